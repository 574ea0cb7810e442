import { findOrCreateFirstKey } from '../accounts/first-key.ts'
import type { Config } from '../config.ts'
import { explainOutage } from '../db/errors.ts'
import { migrate } from '../db/migrate.ts'
import { createPool } from '../db/pool.ts'
import type { Logger } from '../log.ts'

/** What `prepare` prints as JSON. */
export interface Prepared {
  /** The first API key, when there was no workspace yet. */
  key?: string
  /** The name of the oldest gateway, if there is any. */
  gateway?: string
}

/** Brings the schema up to date, and makes the first workspace where there is none. */
export async function prepare(config: Config, log: Logger): Promise<Prepared> {
  const pool = createPool(config.DATABASE_URL ?? '', 2, log)
  try {
    await migrate(pool).catch(explainOutage)
    const key = await findOrCreateFirstKey(pool, config)
    const { rows } = await pool.query('SELECT domain FROM gateway ORDER BY id LIMIT 1')
    return { key, gateway: rows[0]?.domain }
  } finally {
    await pool.end()
  }
}
