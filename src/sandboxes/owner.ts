/** The Berth that owns resources in Docker: two Berths may share an engine. */
import type { Queryable } from '../db/pool.ts'

export interface Owner {
  /** Unique label of everything that this Berth creates. */
  instance: string
  /** Labels of volumes from 0.1.0. Other Berths used them too, so they count only for known agents. */
  former: readonly string[]
  /** The subset of these agents that belongs to this Berth, including deleted agents. */
  knows(agentIds: string[]): Promise<Set<string>>
}

/** Owns nothing: for work on engines, which all Berths share. */
export const NO_OWNER: Owner = { instance: 'nobody', former: [], knows: async () => new Set() }

/** Reads this Berth's identity from the database. */
export async function readOwner(db: Queryable): Promise<Owner> {
  const { rows } = await db.query<{ instance: string; former: string[] }>(
    'SELECT instance, former FROM installation',
  )
  const [row] = rows
  if (!row) throw new Error('the table `installation` has lost its row')
  return {
    ...row,
    async knows(agentIds) {
      const { rows } = await db.query<{ agent_id: string }>(
        'SELECT agent_id FROM agent WHERE agent_id = ANY($1)',
        [agentIds],
      )
      return new Set(rows.map(({ agent_id }) => agent_id))
    },
  }
}
