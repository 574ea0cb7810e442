/** The CIDs of the compared snapshots, in the URL. The first one chosen waits for the second. */
export interface Compared {
  from?: string
  to?: string
}

const text = (value: unknown) => (typeof value === 'string' && value ? value : undefined)

/** Reads the parameters. Anybody may have written the URL, so only strings are kept. */
export function readCompared(search: Record<string, unknown>): Compared {
  const [from, to] = [text(search.from), text(search.to)]
  return { ...(from && { from }), ...(to && { to }) }
}

/** The comparison with `chosen` added or removed. @param newestFirst the CIDs of the history. */
export function choose({ from, to }: Compared, chosen: string, newestFirst: string[]): Compared {
  const kept = [from, to].filter((cid): cid is string => cid !== undefined && cid !== chosen)
  const wasChosen = chosen === from || chosen === to
  const both = wasChosen ? kept : [...kept.slice(-1), chosen]
  const [older, newer] = both.toSorted((a, b) => newestFirst.lastIndexOf(b) - newestFirst.lastIndexOf(a))
  return { ...(older && { from: older }), ...(newer && { to: newer }) }
}
