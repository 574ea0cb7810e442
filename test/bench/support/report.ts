/** What a benchmark found, and how it is shown. */
import { styleText } from 'node:util'

export interface Result {
  what: string
  /** The figure of Berth, and of what it is held against. */
  berth: string
  bare?: string
  ratio?: number
  /** The ratio that is aimed at; a result without a goal is for information. */
  goal?: { atLeast: number } | { atMost: number } | undefined
}

/** Prints results as one table. Nothing here fails: a goal that is missed is shown as missed. */
export function print(title: string, results: Result[]): void {
  const rows = results.map((result) => [
    result.what,
    result.berth,
    result.bare ?? '',
    result.ratio?.toFixed(2) ?? '',
    goal(result),
  ])
  const table = [['', 'Berth', 'bare', 'ratio', 'goal'], ...rows]
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? []
  console.log(`\n${styleText('bold', title)}`)
  for (const [line, row] of table.entries()) {
    const text = row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
    console.log(`  ${line === 0 ? styleText('dim', text) : text}`)
  }
}

function goal({ goal, ratio }: Result): string {
  if (!goal || ratio === undefined) return ''
  const [sign, limit, met] =
    'atLeast' in goal ? ['≥', goal.atLeast, ratio >= goal.atLeast] : ['≤', goal.atMost, ratio <= goal.atMost]
  return `${sign} ${limit} ${met ? 'met' : 'MISSED'}`
}
