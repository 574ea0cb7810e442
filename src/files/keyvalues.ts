import { z } from 'zod'
import { text } from '../http/shapes.ts'

const MAX_PAIRS = 10
const MAX_KEY = 255
const MAX_VALUE = 1024

/** Metadata of a file: at most ten pairs of strings (compatibility 1.3). */
export const keyvalues = z
  .record(text(MAX_KEY).min(1, 'a key must not be empty'), text(MAX_VALUE))
  .refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, `must have at most ${MAX_PAIRS} pairs`)

/** A filter as `keyvalues[<key>]=<value>`, how the npm SDK and the CLI send it. */
export const keyvaluesFilter = z.record(text(MAX_KEY), text(MAX_VALUE)).optional()

/** Joins `keyvalues[…]` and `metadata[…]`, the two spellings of the same filter; undefined when there is none. */
export function mergeFilters(...filters: (Record<string, string> | undefined)[]): string | null {
  const merged = Object.assign({}, ...filters.filter(Boolean))
  return Object.keys(merged).length > 0 ? JSON.stringify(merged) : null
}
