import type { useRights } from '../../api/me.ts'
import { texts } from '../../texts.ts'

const { tabs } = texts.operate

/** The pages of who is signed in: those of owners, and those of the whole instance, are not offered to others. */
export function operateTabs({ isOwner, isInstanceAdmin }: ReturnType<typeof useRights>) {
  return [
    { to: '/dashboard/operate/operations', label: tabs.operations },
    { to: '/dashboard/operate/keys', label: tabs.keys },
    ...(isOwner
      ? [
          { to: '/dashboard/operate/members', label: tabs.members } as const,
          { to: '/dashboard/operate/webhooks', label: tabs.webhooks } as const,
        ]
      : []),
    ...(isOwner || isInstanceAdmin ? [{ to: '/dashboard/operate/audit', label: tabs.audit } as const] : []),
    ...(isInstanceAdmin
      ? [
          { to: '/dashboard/operate/health', label: tabs.health } as const,
          { to: '/dashboard/operate/workers', label: tabs.workers } as const,
          { to: '/dashboard/operate/workspaces', label: tabs.workspaces } as const,
          { to: '/dashboard/operate/plans', label: tabs.plans } as const,
        ]
      : []),
  ] as const
}
