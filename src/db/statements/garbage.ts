/** When garbage is to be collected on a network, and what was. By hand: times are those of the database's clock. */
import { statement } from './statement.ts'

/**
 * Notes that something was released on a network. Where that is noted already since the last collection, the row is left
 * alone for ten seconds: all deletions write to it.
 */
export const noteRelease = statement({
  name: 'garbage-release',
  parameters: ['text'],
  columns: {},
  text: `UPDATE garbage_collection SET released_at = clock_timestamp() WHERE network = $1 AND (released_at IS NULL
    OR released_at <= coalesce(started_at, '-infinity') OR released_at < clock_timestamp() - interval '10 seconds')`,
})

/**
 * Whether a collection is due that has been due for `$2` seconds: something was released since the last one, or that is
 * 24 times as long ago, as what an upload that was killed leaves is released by nobody.
 */
export const readDue = statement({
  name: 'garbage-due',
  parameters: ['text', 'float8'],
  columns: { now: 'timestamptz', due: 'bool' },
  text: `SELECT clock_timestamp() AS now, started_at IS NULL OR (started_at < clock_timestamp() - $2 * interval '1 second'
      AND (released_at > started_at OR started_at < clock_timestamp() - 24 * $2 * interval '1 second')) AS due
    FROM garbage_collection WHERE network = $1`,
})

/** Adds a collection that began at `$2` and has ended: its blocks and bytes. */
export const addCollection = statement({
  name: 'garbage-collected',
  parameters: ['text', 'timestamptz', 'int8', 'int8'],
  columns: {},
  text: `UPDATE garbage_collection SET started_at = greatest(started_at, $2), runs = runs + 1,
    removed_blocks = removed_blocks + $3, removed_bytes = removed_bytes + $4 WHERE network = $1`,
})
