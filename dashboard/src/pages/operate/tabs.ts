import type { useRights } from '../../api/me.ts'
import { texts } from '../../texts.ts'

const { tabs } = texts.operate

/** The tabs for the signed-in user. Only owners and instance admins see the tabs for their roles. */
export function operateTabs({ isOwner, isInstanceAdmin }: ReturnType<typeof useRights>) {
  return [
    { to: '/dashboard/operate/operations', label: tabs.operations },
    { to: '/dashboard/operate/keys', label: tabs.keys },
    { to: '/dashboard/operate/connect', label: tabs.connect },
    { to: '/dashboard/operate/egress', label: tabs.egress },
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
