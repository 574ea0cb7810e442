/** Results of benchmarks, and how they are shown. */
import { styleText } from 'node:util'

export interface Result {
  /** The name of the result in the benchmark, the same in every run, because runs are compared by it. */
  what: string
  /** The figure of Berth, and of the alternative. */
  berth: string
  bare?: string
  ratio?: number
  /** The target ratio; a result without a goal is for information. */
  goal?: { atLeast: number } | { atMost: number } | undefined
}

export type Verdict = 'met' | 'missed'

/** A ratio that is worse by this share is slower; two runs of the same code may differ by less. */
const TOLERANCE = 0.15

/** Undefined for a result without a goal. */
export function verdict({ goal, ratio }: Result): Verdict | undefined {
  if (!goal || ratio === undefined) return undefined
  const met = 'atLeast' in goal ? ratio >= goal.atLeast : ratio <= goal.atMost
  return met ? 'met' : 'missed'
}

/** `≥ 0.6`; empty without a goal. */
export function showGoal({ goal }: Result): string {
  if (!goal) return ''
  return 'atLeast' in goal ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`
}

/** A ratio with at least two significant digits. */
export const showRatio = ({ ratio }: Result) =>
  ratio === undefined ? '' : ratio < 0.1 ? ratio.toPrecision(2) : ratio.toFixed(ratio < 10 ? 2 : 0)

/**
 * How a result differs from an earlier run. Results without a ratio are never `slower`, because they depend on the
 * machine.
 */
export function change(now: Result, then: Result | undefined): 'new' | 'slower' | 'faster' | '' {
  if (!then) return 'new'
  if (now.ratio === undefined || then.ratio === undefined) return ''
  const better = moreIsBetter(now) ? now.ratio / then.ratio : then.ratio / now.ratio
  if (better < 1 - TOLERANCE) return 'slower'
  return better > 1 / (1 - TOLERANCE) ? 'faster' : ''
}

/**
 * True if a larger figure is better: by the goal; without one, for a ratio of rates (`/s`), but not of times or bytes.
 */
const moreIsBetter = ({ goal, berth }: Result) => (goal ? 'atLeast' in goal : berth.includes('/s'))

/**
 * Prints results as one table. Nothing here fails: a goal that is missed is shown as missed.
 * @param earlier results of an earlier run by name, to show next to them.
 */
export function print(title: string, results: Result[], earlier?: Map<string, Result>): void {
  const rows = results.map((result) => {
    const then = earlier?.get(result.what)
    return [
      result.what,
      result.berth,
      result.bare ?? '',
      showRatio(result),
      showGoal(result),
      verdict(result)?.replace('missed', 'MISSED') ?? '',
      ...(earlier ? [then ? showRatio(then) || then.berth : '', change(result, then)] : []),
    ]
  })
  const head = ['', 'Berth', 'bare', 'ratio', 'goal', '', ...(earlier ? ['then', ''] : [])]
  const table = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  console.log(`\n${styleText('bold', title)}`)
  for (const [line, row] of table.entries()) {
    const text = row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
    console.log(`  ${line === 0 ? styleText('dim', text) : text}`)
  }
}
