/** Filters and order of the agent list, in the URL. */
export const STATES = ['running', 'starting', 'not_running', 'failed'] as const
export type StateName = (typeof STATES)[number]
export const SORTS = ['name', 'newest', 'oldest', 'state', 'memory'] as const
export type Sort = (typeof SORTS)[number]

/** The URL parameters. */
export interface Shown {
  q?: string
  state?: StateName
  sort?: Sort
}
const oneOf = <T extends string>(known: readonly T[], value: unknown) => known.find((one) => one === value)

/** Reads the parameters. Anybody may have written the URL, so unknown values are dropped. */
export function readShown({ q, state, sort }: Record<string, unknown>): Shown {
  const known = { state: oneOf(STATES, state), sort: oneOf(SORTS, sort) }
  return {
    ...(q !== undefined && q !== '' && { q: String(q) }),
    ...(known.state && { state: known.state }),
    ...(known.sort && { sort: known.sort }),
  }
}
