import { texts } from '../texts.ts'

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const

/** Bytes as people read them: `1.2 MB`. */
export function bytes(n: number): string {
  const power = Math.min(Math.floor(Math.log10(Math.max(n, 1)) / 3), UNITS.length - 1)
  return `${(n / 1000 ** power).toLocaleString('en', { maximumFractionDigits: power ? 1 : 0 })} ${UNITS[power]}`
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const STEPS = [
  [60, 'second'],
  [3600, 'minute'],
  [86_400, 'hour'],
  [2_592_000, 'day'],
  [31_536_000, 'month'],
  [Number.POSITIVE_INFINITY, 'year'],
] as const

/** `3 minutes ago`. */
export function ago(time: string): string {
  const seconds = (Date.parse(time) - Date.now()) / 1000
  if (seconds <= 0 && seconds > -60) return texts.justNow
  let size = 1
  for (const [upTo, unit] of STEPS) {
    if (Math.abs(seconds) < upTo) return relative.format(Math.round(seconds / size), unit)
    size = upTo
  }
  return time
}

const EXACT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' })
const CLOCK = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' })

/** `Nov 26, 2026, 09:41:07 GMT+1`. */
export const exact = (time: string): string => EXACT.format(new Date(time))

/** `09:41:07`, here. */
export const clock = (time: string | number): string => CLOCK.format(new Date(time))

/** The two ends of a long id. */
export const shorten = (id: string): string => (id.length > 18 ? `${id.slice(0, 10)}…${id.slice(-6)}` : id)

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const SMALL = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const CENTS = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
/** Amounts below this are shown as less than it. */
const LEAST_USD = 0.0001

/** A large count as people read it: `1.2M`. */
export const compact = (n: number): string => COMPACT.format(n)

/** US dollars, with more digits below a cent: `$1,204.50`, `$0.0031`. */
export function usd(amount: number | string): string {
  const n = Number(amount)
  if (n > 0 && n < LEAST_USD) return `<$${LEAST_USD}`
  return `$${n > 0 && n < 0.01 ? SMALL.format(n) : CENTS.format(n)}`
}

/** Milliseconds as people read them: `850 ms`, `2.4 s`. */
export const duration = (ms: number): string =>
  ms < 1000
    ? `${Math.round(ms)} ms`
    : `${(ms / 1000).toLocaleString('en', { maximumFractionDigits: ms < 10_000 ? 1 : 0 })} s`
