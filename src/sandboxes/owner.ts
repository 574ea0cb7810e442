/** The Berth that owns resources in Docker: two Berths may share an engine. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { Queryable } from '../db/pool.ts'
import { readIfExists } from '../lib/files.ts'

export interface Owner {
  /** Unique label of everything that this Berth creates. */
  instance: string
  /** Labels that it used before. Other Berths may have used them too, so they count only for known agents. */
  former: readonly string[]
  /** The subset of these agents that belongs to this Berth, including deleted agents. */
  knows(agentIds: string[]): Promise<Set<string>>
}

/** Owns nothing: for work on engines, which all Berths share. */
export const NO_OWNER: Owner = { instance: 'nobody', former: [], knows: async () => new Set() }

/**
 * Reads this Berth's identity from the database, and stores the labels that 0.1.0 derived from the settings, which may
 * change later.
 */
export async function readOwner(db: Queryable, config: Config): Promise<Owner> {
  const labels = await formerLabels(config)
  await db.query(
    `UPDATE installation SET former = ARRAY(SELECT DISTINCT unnest(former || $1::text[])) WHERE NOT former @> $1`,
    [labels],
  )
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

async function formerLabels({ BERTH_INSTANCE, BERTH_DATA_DIR }: Config): Promise<string[]> {
  const secret = (await readIfExists(join(BERTH_DATA_DIR, 'instance.id')))?.trim()
  const made = secret && createHash('sha256').update(secret).digest('hex').slice(0, 16)
  return [BERTH_INSTANCE, made].filter((label): label is string => Boolean(label))
}
