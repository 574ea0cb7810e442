/** An open load: requests begin at a rate, however long the earlier ones take, up to a number at a time. */
import { setTimeout as delay } from 'node:timers/promises'
import { quantile } from './numbers.ts'

/** A request and its result. Times are in ms, `at` since the load began. */
export interface Sent {
  kind: string
  at: number
  ms: number
  /** `lost`: the connection broke, or no response came in time. */
  status: number | 'lost'
}

export interface Task {
  kind: string
  send(): Promise<Sent['status']>
}

export interface Driven {
  sent: Sent[]
  seconds: number
  /** Responses with a status below 300 in a second. */
  perSecond: number
}

const TICK_MS = 2
/** Requests that could not begin in time are made up for within this time, and else left out. */
const CATCH_UP_SECONDS = 0.25

/**
 * Sends requests for some seconds, and waits for the last ones. A server that is slower than the rate gets `atATime`
 * requests at a time instead.
 */
export async function drive(
  next: () => Task,
  { perSecond, seconds, atATime }: { perSecond: number; seconds: number; atATime: number },
): Promise<Driven> {
  const sent: Sent[] = []
  const underWay = new Set<Promise<void>>()
  const began = performance.now()
  const begin = ({ kind, send }: Task) => {
    const start = performance.now()
    const done = send().then((status) => {
      sent.push({ kind, at: start - began, ms: performance.now() - start, status })
      underWay.delete(done)
    })
    underWay.add(done)
  }
  let last = began
  let due = 0
  while (last - began < seconds * 1000) {
    const now = performance.now()
    due = Math.min(due + ((now - last) / 1000) * perSecond, perSecond * CATCH_UP_SECONDS)
    last = now
    while (due >= 1 && underWay.size < atATime) {
      due--
      begin(next())
    }
    await delay(TICK_MS)
  }
  await Promise.all(underWay)
  const took = (performance.now() - began) / 1000
  return { sent, seconds: took, perSecond: sent.filter(isGood).length / took }
}

export const isGood = ({ status }: Sent): boolean => status !== 'lost' && status < 300

/** `p50 12.0 ms, p99 80.1 ms` of the requests that succeeded. */
export function percentiles(sent: Sent[], kind: string): { p50: number; p99: number } {
  const times = sent.filter((one) => one.kind === kind && isGood(one)).map(({ ms }) => ms)
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
}

/** `503 × 12, lost × 3`; `none`. */
export function failures(sent: Sent[]): string {
  const counts = new Map<Sent['status'], number>()
  for (const one of sent) if (!isGood(one)) counts.set(one.status, (counts.get(one.status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${status} × ${count}`).join(', ') || 'none'
}

/**
 * A fault as its clients see it: seconds between the first and the last failed response after `from`, and the longest
 * time without a successful one.
 */
export function outage(sent: Sent[], from: number, to: number): { failing: number; silent: number } {
  const ends = sent
    .map((one) => ({
      good: isGood(one),
      end: one.at + one.ms,
      server: one.status === 'lost' || one.status >= 500,
    }))
    .filter(({ end }) => end >= from && end < to)
    .sort((a, b) => a.end - b.end)
  const failed = ends.filter(({ good, server }) => !good && server)
  const good = [from, ...ends.filter((one) => one.good).map(({ end }) => end)]
  const gaps = good.slice(1).map((end, i) => end - (good[i] ?? end))
  const [first, last] = [failed[0], failed.at(-1)]
  return {
    failing: first && last ? (last.end - first.end) / 1000 : 0,
    silent: Math.max(0, ...gaps) / 1000,
  }
}
