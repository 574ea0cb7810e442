/** Tables, sizes and times for people. */
import { columns, harmless, isTerminal, padEnd, paint, widthOf } from './terminal.ts'

/** Rows under the names of the columns. In a terminal, the longest column is cut to the width. */
export function table(rows: Record<string, unknown>[], none = 'none'): string {
  if (rows.length === 0) return none
  const names = Object.keys(rows[0] ?? {})
  const cells = [names, ...rows.map((row) => names.map((name) => cell(row[name])))]
  const widths = names.map((_, column) => Math.max(...cells.map((line) => widthOf(line[column] ?? ''))))
  if (isTerminal()) narrow(widths, columns())
  return cells
    .map((line, index) => {
      const text = line
        .map((text, column) => padEnd(cut(text, widths[column] ?? 0), widths[column] ?? 0))
        .join('  ')
        .trimEnd()
      return index === 0 ? paint('dim', text) : text
    })
    .join('\n')
}

/** Names and values, one a line. */
export function details(fields: Record<string, unknown>): string {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  const width = Math.max(...known.map(([name]) => widthOf(name)))
  return known.map(([name, value]) => `${paint('dim', padEnd(name, width))}  ${cell(value)}`).join('\n')
}

const LEAST = 12

/** Takes from the widest columns until the row fits. */
function narrow(widths: number[], room: number): void {
  const total = () => widths.reduce((sum, width) => sum + width, 0) + 2 * (widths.length - 1)
  for (let over = total() - room; over > 0; over = total() - room) {
    const widest = widths.indexOf(Math.max(...widths))
    const others = widths.filter((_, column) => column !== widest)
    const floor = Math.max(LEAST, ...others)
    const width = widths[widest] ?? 0
    const next = Math.max(width - over, Math.min(floor, width - 1))
    if (next < LEAST) return
    widths[widest] = next
  }
}

const cut = (text: string, width: number): string =>
  widthOf(text) <= width
    ? text
    : `${Array.from(text)
        .slice(0, width - 1)
        .join('')}…`

function cell(value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value ?? '')
  return harmless(text) || '-'
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `48.2 KiB` */
export function bytes(count: number): string {
  const unit = count < 1 ? 0 : Math.min(Math.floor(Math.log2(count) / 10), UNITS.length - 1)
  const value = count / 1024 ** unit
  return `${unit === 0 ? value : value.toFixed(value < 100 ? 1 : 0)} ${UNITS[unit]}`
}

const STEPS: [string, number][] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
]

/** `3 min ago` in a terminal; elsewhere the time itself, which programs can read. */
export function ago(time: string | number | null | undefined, now = Date.now()): string {
  if (time === null || time === undefined) return '-'
  const date = new Date(time)
  if (!isTerminal()) return date.toISOString()
  return `${span(now - date.getTime())} ago`
}

/** `3 min` */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  const [unit, size] = STEPS.find(([, size]) => seconds >= size) ?? ['s', 1]
  return `${Math.floor(seconds / size)} ${unit}`
}

/** The milliseconds of `90d`, `12h`, `30m`, `45s`; undefined for another text. */
export function readSpan(text: string): number | undefined {
  const [, amount, unit] = /^(\d{1,6})\s*(s|m|min|h|d)$/.exec(text) ?? []
  const size = STEPS.find(([name]) => name === (unit === 'm' ? 'min' : unit))?.[1]
  return amount && size ? Number(amount) * size * 1000 : undefined
}
