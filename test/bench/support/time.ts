/** Durations, and comparisons of Berth's with others. */
import { median } from './numbers.ts'
import type { Result } from './report.ts'

/** The duration of `work`, in ms. */
export async function time(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** The medians of rounds in ms, and the median of their ratios. */
export function compare(
  what: string,
  rounds: { berth: number; bare: number }[],
  options: Pick<Result, 'goal'> = {},
): Result {
  return {
    what,
    berth: ms(median(rounds.map(({ berth }) => berth))),
    bare: ms(median(rounds.map(({ bare }) => bare))),
    ratio: median(rounds.map(({ berth, bare }) => berth / bare)),
    ...options,
  }
}

/** A time in ms, next to its limit. */
export const against = (what: string, value: number, most: number): Result => ({
  what,
  berth: ms(value),
  bare: ms(most),
  ratio: value / most,
  goal: { atMost: 1 },
})

/** `12.3 ms`, `1.23 s`. */
export const ms = (n: number) => (n < 1000 ? `${n.toFixed(1)} ms` : `${(n / 1000).toFixed(2)} s`)
