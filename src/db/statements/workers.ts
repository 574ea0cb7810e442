/**
 * The rows of workers. Hand-written SQL: whether a worker is alive depends on the clock of the database, and the
 * connections of leases have no Prisma.
 */
import { isoMillis, narrow, statement } from './statement.ts'

const json = narrow<string>('jsonb')

/**
 * Records that `$1` is alive: its concurrency, how it sees the public and the private node, its components, and its
 * version.
 */
export const writeWorker = statement({
  name: 'worker-write',
  parameters: ['uuid', json, json, json, json, 'text'],
  columns: {},
  text: `INSERT INTO worker (id, concurrency, ipfs, ipfs_private, parts, version) VALUES ($1, $2, $3, $4, $5, $6)
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

/** A page of workers after `$1`: those that reported within the last hour, in the order of their ids. */
export const listWorkers = statement({
  name: 'worker-list',
  parameters: ['uuid?', 'int8'],
  columns: {
    id: 'uuid',
    version: 'text?',
    isAlive: 'bool',
    startedAt: 'text',
    seenAt: 'text',
    slots: narrow<Record<string, number>>('jsonb'),
    parts: narrow<unknown>('jsonb'),
  },
  text: `SELECT id, version, seen_at > now() - interval '15 seconds' AS "isAlive", ${isoMillis('started_at')} AS "startedAt",
      ${isoMillis('seen_at')} AS "seenAt", concurrency AS slots, parts
    FROM worker WHERE id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000') ORDER BY id LIMIT $2`,
})

/** Workers that reported within the last 15 seconds, latest first. */
export const readLiveWorkers = statement({
  name: 'worker-read',
  parameters: [],
  columns: {
    slots: narrow<unknown>('jsonb'),
    ipfs: narrow<unknown>('jsonb'),
    ipfsPrivate: narrow<unknown>('jsonb'),
    parts: narrow<unknown>('jsonb'),
  },
  text: `SELECT concurrency AS slots, ipfs, ipfs_private AS "ipfsPrivate", parts FROM worker
    WHERE seen_at > now() - interval '15 seconds' ORDER BY seen_at DESC`,
})
