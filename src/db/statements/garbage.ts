/**
 * When garbage collection is due on a network, and what it freed. Hand-written SQL, because times are from the
 * database's clock. A network without a row, as after the restore of an older backup, was never collected.
 */
import { statement } from './statement.ts'

/**
 * Records that something was released on a network. If a release is already recorded since the last collection, the row
 * is not rewritten for ten seconds, because every deletion writes to it.
 */
export const noteRelease = statement({
  name: 'garbage-release',
  parameters: ['text'],
  columns: {},
  text: `UPDATE garbage_collection SET released_at = clock_timestamp() WHERE network = $1 AND (released_at IS NULL
    OR released_at <= coalesce(started_at, '-infinity') OR released_at < clock_timestamp() - interval '10 seconds')`,
})

/**
 * True if a collection is due, at the earliest `$2` seconds after the last one. Either content was released since then,
 * or the last one was 24 times as long ago, because nobody releases the remains of a killed upload.
 */
export const readDue = statement({
  name: 'garbage-due',
  parameters: ['text', 'float8'],
  columns: { now: 'timestamptz', due: 'bool' },
  text: `SELECT clock_timestamp() AS now, NOT EXISTS (SELECT FROM garbage_collection WHERE network = $1
      AND (started_at >= clock_timestamp() - $2 * interval '1 second'
        OR started_at >= greatest(released_at, clock_timestamp() - 24 * $2 * interval '1 second'))) AS due`,
})

/** Records a finished collection that began at `$2`, with its blocks and bytes. */
export const addCollection = statement({
  name: 'garbage-collected',
  parameters: ['text', 'timestamptz', 'int8', 'int8'],
  columns: {},
  text: `INSERT INTO garbage_collection AS sum (network, started_at, runs, removed_blocks, removed_bytes)
    VALUES ($1, $2, 1, $3, $4) ON CONFLICT (network) DO UPDATE SET started_at = greatest(sum.started_at, $2),
      runs = sum.runs + 1, removed_blocks = sum.removed_blocks + $3, removed_bytes = sum.removed_bytes + $4`,
})
