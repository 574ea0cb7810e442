/** The rows of workers. By hand: who is alive goes by the clock of the database, and leases' connections have no Prisma. */
import { narrow, statement } from './statement.ts'

const json = narrow<string>('jsonb')

/** Writes that `$1` is alive: its concurrency, how it sees the public and the private node, and its parts. */
export const writeWorker = statement({
  name: 'worker-write',
  parameters: ['uuid', json, json, json, json],
  columns: {},
  text: `INSERT INTO worker (id, concurrency, ipfs, ipfs_private, parts) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO UPDATE
    SET ipfs = EXCLUDED.ipfs, ipfs_private = EXCLUDED.ipfs_private, parts = EXCLUDED.parts, seen_at = now()`,
})

export const forgetWorkers = statement({
  name: 'worker-forget',
  parameters: [],
  columns: {},
  text: `DELETE FROM worker WHERE seen_at < now() - interval '1 hour'`,
})

export const removeWorker = statement({
  name: 'worker-remove',
  parameters: ['uuid'],
  columns: {},
  text: 'DELETE FROM worker WHERE id = $1',
})

/** Workers that have written within 15 seconds, the latest first. */
export const readLiveWorkers = statement({
  name: 'worker-read',
  parameters: [],
  columns: {
    ipfs: narrow<unknown>('jsonb'),
    ipfsPrivate: narrow<unknown>('jsonb'),
    parts: narrow<unknown>('jsonb'),
  },
  text: `SELECT ipfs, ipfs_private AS "ipfsPrivate", parts FROM worker
    WHERE seen_at > now() - interval '15 seconds' ORDER BY seen_at DESC`,
})
