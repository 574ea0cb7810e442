/** The index over parts of names, and what of a part is looked up in it. */
import { missingIndexes } from '../db/late-indexes.ts'
import type { Queryable } from '../db/pool.ts'

/**
 * Names of files as PostgreSQL's statistics have them, in lower case: those of many files, and a hundred others, at even
 * distances in the order of all.
 */
export type NameSample = string[]

/** Reads what names are like; undefined where they have no index. */
export async function readNameIndex(db: Queryable): Promise<NameSample | undefined> {
  if ((await missingIndexes(db)).includes('file_name_part')) return undefined
  const { rows } = await db.query<{ name: string }>(
    `SELECT unnest(most_common_vals::text::text[] || histogram_bounds::text::text[]) AS name FROM pg_stats
     WHERE schemaname = ANY (current_schemas(false)) AND tablename = 'file' AND attname = 'name'`,
  )
  return rows.map(({ name }) => name.toLowerCase())
}

/** A word is common that this share of names has. */
const COMMON = 1 / 4
/** Following the list finds a page of what this share of names has sooner than the index, which reads all that have it. */
const WORTH_FOLLOWING = 1 / 20

const shareOf = (part: string, sample: NameSample): number =>
  sample.filter((name) => name.includes(part.toLowerCase())).length / sample.length

/** True for a part that so many names have that the list is followed in its own order, without the index. */
export const isInManyNames = (part: string, sample: NameSample): boolean =>
  shareOf(part, sample) >= WORTH_FOLLOWING

/**
 * The words of a part of a name that are looked up in the index in its place: all files that have the part have them. The
 * index reads a list for each three letters, and the longest are those of words that most names have, such as the end
 * `.jpg`: these are left out where another word is in next to no name. Empty where the part is looked up whole.
 */
export function wordsToLookUp(part: string, sample: NameSample): string[] {
  // PostgreSQL's lower case of a letter outside of ASCII may depend on the letter after it.
  const words = /^[ -~]+$/.test(part) ? (part.match(/[a-z\d]{3,}/gi) ?? []) : []
  const shares = words.map((word) => shareOf(word, sample))
  const rare = words.filter((_, i) => Number(shares[i]) < COMMON)
  return shares.includes(0) && rare.length < words.length ? rare : []
}
