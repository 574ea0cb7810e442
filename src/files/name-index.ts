/** The index over parts of names, and which words of a part are looked up in it. */
import { missingIndexes } from '../db/late-indexes.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import { coalesce } from '../lib/coalesce.ts'

/** Interval of the check for the index, which a worker may build at any time. */
const POLL_MS = 60_000

/**
 * File names from PostgreSQL's statistics, in lower case: the most common names, and about a hundred others, evenly
 * spaced in sort order.
 */
export type NameSample = string[]

/** Reads a sample of names; undefined if the index does not exist. */
export async function readNameIndex(db: Queryable): Promise<NameSample | undefined> {
  if ((await missingIndexes(db)).includes('file_name_part')) return undefined
  const { rows } = await db.query<{ name: string }>(
    `SELECT unnest(most_common_vals::text::text[] || histogram_bounds::text::text[]) AS name FROM pg_stats
     WHERE schemaname = ANY (current_schemas(false)) AND tablename = 'file' AND attname = 'name'`,
  )
  return rows.map(({ name }) => name.toLowerCase())
}

/** Like {@link readNameIndex}, once a minute; undefined too if it cannot be read. */
export const watchNameIndex = (pool: Pool): (() => Promise<NameSample | undefined>) =>
  coalesce(POLL_MS, () => readNameIndex(pool).catch(() => undefined))

/** A word is common if at least this share of names contains it. */
const COMMON = 1 / 4
/**
 * If at least this share of names matches, following the list finds a page sooner than the index, which reads all
 * matches.
 */
const WORTH_FOLLOWING = 1 / 20

const shareOf = (part: string, sample: NameSample): number =>
  sample.filter((name) => name.includes(part.toLowerCase())).length / sample.length

/** True if so many names contain the part that the list is followed in its own order, without the index. */
export const isInManyNames = (part: string, sample: NameSample): boolean =>
  shareOf(part, sample) >= WORTH_FOLLOWING

/**
 * The words of a name's part that are looked up in the index instead of the part: every file that matches the part has
 * them. The index reads a list for each three letters. The longest lists belong to words that most names have, such as
 * the ending `.jpg`: these are left out if another word is in almost no name. Empty if the part is looked up whole.
 */
export function wordsToLookUp(part: string, sample: NameSample): string[] {
  // For a letter outside ASCII, PostgreSQL's lower case may depend on the next letter.
  const words = /^[ -~]+$/.test(part) ? (part.match(/[a-z\d]{3,}/gi) ?? []) : []
  const shares = words.map((word) => shareOf(word, sample))
  const rare = words.filter((_, i) => Number(shares[i]) < COMMON)
  return shares.includes(0) && rare.length < words.length ? rare : []
}
