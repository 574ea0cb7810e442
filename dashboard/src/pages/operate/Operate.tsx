import { Outlet } from '@tanstack/react-router'
import { Tabs } from '../../parts/tabs.tsx'
import { PageHead } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const { tabs } = texts.operate

/** What whoever runs this workspace, or this Berth, looks at. */
export function Operate() {
  return (
    <>
      <PageHead title={texts.operate.title} />
      <Tabs
        label={texts.operate.title}
        tabs={[{ to: '/dashboard/operate/operations', label: tabs.operations }]}
      />
      <Outlet />
    </>
  )
}
