import { Outlet } from '@tanstack/react-router'
import { useRights } from '../../api/me.ts'
import { Tabs } from '../../parts/tabs.tsx'
import { PageHead } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { operateTabs } from './tabs.ts'

/** The pages for the owner of a workspace and for the operator of the instance. */
export function Operate() {
  return (
    <>
      <PageHead title={texts.operate.title} />
      <Tabs label={texts.operate.title} tabs={[...operateTabs(useRights())]} />
      <Outlet />
    </>
  )
}
