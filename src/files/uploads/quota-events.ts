/** Tells whoever follows a workspace that the plan refuses its uploads. */
import type { Queryable } from '../../db/pool.ts'
import { noteQuotaReached } from '../../db/statements/events.ts'
import { WindowCounts } from '../../http/window-counts.ts'

/** Clients that are refused try again: one event tells of all refusals of a while. */
const QUIET_MS = 5 * 60_000

const told = new WindowCounts(QUIET_MS)

/** Notes that an upload was refused since the workspace keeps all that its plan lets it. The answer does not depend on it. */
export async function tellQuotaReached(db: Queryable, workspaceId: string): Promise<void> {
  if (told.add(workspaceId).count > 1) return
  await noteQuotaReached.run(db, workspaceId).catch(() => {})
}
