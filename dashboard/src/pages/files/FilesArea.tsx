import { Outlet } from '@tanstack/react-router'
import { Tabs } from '../../parts/tabs.tsx'
import { PageHead } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const { tabs } = texts.files

/** The pages of files, side by side. */
export function FilesArea() {
  return (
    <>
      <PageHead title={texts.files.title} />
      <Tabs
        label={texts.files.title}
        tabs={[
          { to: '/dashboard/files', label: tabs.files },
          { to: '/dashboard/files/pins', label: tabs.pins },
          { to: '/dashboard/files/groups', label: tabs.groups },
          { to: '/dashboard/files/gateways', label: tabs.gateways },
        ]}
      />
      <Outlet />
    </>
  )
}
