import { z } from 'zod'
import { text } from '../http/shapes.ts'

export const MAX_PAIRS = 10
const MAX_KEY = 255
const MAX_VALUE = 1024
export const TOO_MANY_PAIRS = `must have at most ${MAX_PAIRS} pairs`

/**
 * A map of texts. `__proto__` is rejected explicitly: Zod, like any code that builds a plain object, would drop it
 * silently, and a dropped filter matches everything.
 */
const textMap = <V extends z.ZodType<string | null>>(
  value: V,
  key = text(MAX_KEY).min(1, 'a key must not be empty'),
) =>
  z.preprocess(
    (input, context) => {
      if (typeof input === 'object' && input !== null && Object.hasOwn(input, '__proto__')) {
        context.addIssue('a key must not be __proto__')
      }
      return input
    },
    z.record(key, value).meta({ examples: [{ season: 'spring' }] }),
  )

const atMostTen = (map: ReturnType<typeof textMap<z.ZodType<string>>>) =>
  map.refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, TOO_MANY_PAIRS)

/** Metadata of a file: at most ten pairs of strings. */
export const keyvalues = atMostTen(textMap(text(MAX_VALUE)))

/** The older API also allows numbers as values, which become text. */
export const olderKeyvalues = atMostTen(
  textMap(
    z
      .preprocess((value) => (typeof value === 'number' ? String(value) : value), text(MAX_VALUE))
      .meta({ type: ['string', 'number'] }),
  ),
)

/** Changes of metadata: a text sets its key, `null` removes it. */
export const keyvaluesPatch = textMap(text(MAX_VALUE).nullable())

/** A filter as `keyvalues[<key>]=<value>`, in the format of the npm SDK and the CLI. */
export const keyvaluesFilter = textMap(text(MAX_VALUE), text(MAX_KEY)).optional()

/** Merges `keyvalues[…]` and `metadata[…]`, two spellings of the same filter; null if there is none. */
export function mergeFilters(...filters: (Record<string, string> | undefined)[]): string | null {
  const merged = Object.assign({}, ...filters.filter(Boolean))
  return Object.keys(merged).length > 0 ? JSON.stringify(merged) : null
}
