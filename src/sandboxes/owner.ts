/** The Berth that has made a thing in Docker: two of them may share an engine. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { Queryable } from '../db/pool.ts'
import { readIfExists } from '../lib/files.ts'

export interface Owner {
  /** Label of all that this Berth makes; no other one has it. */
  instance: string
  /** Labels that it used before. Others may have had them too: of these only things of known agents are its own. */
  former: readonly string[]
  /** The ones of these agents that are this Berth's, deleted ones included. */
  knows(agentIds: string[]): Promise<Set<string>>
}

/** Owns nothing: for work on engines, which are every Berth's. */
export const NOBODY: Owner = { instance: 'nobody', former: [], knows: async () => new Set() }

/**
 * Reads from the database who this Berth is, and writes down the labels that 0.1.0 took from the settings: they may
 * be gone from there later.
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
