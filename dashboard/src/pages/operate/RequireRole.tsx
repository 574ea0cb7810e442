import type { ReactNode } from 'react'
import { useRights } from '../../api/me.ts'
import { Empty } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const { owners, ownersHint, admins, adminsHint } = texts.operate

/** A page for a role. Other users who open its URL see who may use it. */
export function RequireRole({ who, children }: { who: 'owners' | 'admins'; children: ReactNode }) {
  const { isOwner, isInstanceAdmin } = useRights()
  if (who === 'owners') return isOwner ? children : <Empty title={owners} hint={ownersHint} />
  return isInstanceAdmin ? children : <Empty title={admins} hint={adminsHint} />
}
