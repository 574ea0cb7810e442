/** Converts schedules of tasks to words and to form values. */
import { texts } from '../../../texts.ts'

const t = texts.tasks
const MINUTE_MS = 60_000
export const UNITS = { minutes: MINUTE_MS, hours: 60 * MINUTE_MS, days: 1440 * MINUTE_MS } as const
export type Unit = keyof typeof UNITS

export type Schedule =
  | { kind: 'at'; at: string }
  | { kind: 'every'; everyMs: number }
  | { kind: 'cron'; expr: string; tz?: string | undefined }

/** Converts an interval to the largest unit that divides it evenly. */
export function interval(everyMs: number): { n: number; unit: Unit } {
  const units: Unit[] = ['days', 'hours', 'minutes']
  const unit = units.find((one) => everyMs % UNITS[one] === 0) ?? 'minutes'
  return { n: everyMs / UNITS[unit], unit }
}

/** `every hour`, `at 09:00 on weekdays`; other cron expressions unchanged. */
export function inWords(schedule: Schedule): string {
  if (schedule.kind === 'at') return t.once(moment(schedule.at))
  if (schedule.kind === 'every') {
    const { n, unit } = interval(schedule.everyMs)
    return t.every(Math.round(n * 100) / 100, unit)
  }
  const words = cronInWords(schedule.expr) ?? t.cron(schedule.expr)
  return schedule.tz ? `${words} (${schedule.tz})` : words
}

/** A time in the person's format and time zone. */
export const moment = (at: string | number): string => {
  const time = new Date(at)
  if (Number.isNaN(time.getTime())) return String(at)
  return time.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
}

/** A common cron expression in words; undefined for any other. */
export function cronInWords(expr: string): string | undefined {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = expr.trim().split(/\s+/)
  if (month !== '*') return undefined
  if (hour === '*' && day === '*' && weekday === '*') return minutesInWords(minute)
  const step = /^\*\/(\d+)$/.exec(hour)
  if (step && /^\d+$/.test(minute) && day === '*' && weekday === '*')
    return t.everyHours(Number(step[1]), pad(minute))
  if (!/^\d+$/.test(minute) || !/^\d+(,\d+)*$/.test(hour)) return undefined
  const times = t.times(hour.split(',').map((one) => `${pad(one)}:${pad(minute)}`))
  if (day === '*') {
    const days = weekdaysOf(weekday)
    return days && `${times} ${daysInWords(days)}`
  }
  return /^\d+$/.test(day) && weekday === '*' ? `${times} ${t.onDay(Number(day))}` : undefined
}

function minutesInWords(minute: string): string | undefined {
  if (minute === '*') return t.every(1, 'minutes')
  if (/^\d+$/.test(minute)) return t.hourly(pad(minute))
  const step = /^\*\/(\d+)$/.exec(minute)
  return step ? t.every(Number(step[1]), 'minutes') : undefined
}

const pad = (n: string) => n.padStart(2, '0')
const ALL = [0, 1, 2, 3, 4, 5, 6]

/** The weekdays in a cron field, with Sunday as 0; undefined for other forms. */
export function weekdaysOf(field: string): number[] | undefined {
  if (field === '*') return ALL
  const days = new Set<number>()
  for (const part of field.split(',')) {
    const [, from, to = from] = /^([0-7])(?:-([0-7]))?$/.exec(part) ?? []
    if (from === undefined || Number(from) > Number(to)) return undefined
    for (let day = Number(from); day <= Number(to); day++) days.add(day % 7)
  }
  return [...days].sort()
}

function daysInWords(days: number[]): string {
  const key = days.join()
  if (key === ALL.join()) return t.daily
  if (key === '1,2,3,4,5') return t.weekdays
  if (key === '0,6') return t.weekends
  // The week starts on Monday.
  return t.onDays([...days].sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7)).map((day) => t.days[day] ?? ''))
}

/** The time and weekdays of a cron expression, as the form needs them; undefined for other expressions. */
export function asTimeOnDays(expr: string): { time: string; days: number[] } | undefined {
  const [, minute, hour, weekday] = /^(\d+)\s+(\d+)\s+\*\s+\*\s+(\S+)$/.exec(expr.trim()) ?? []
  const days = weekday && weekdaysOf(weekday)
  return minute && hour && days ? { time: `${pad(hour)}:${pad(minute)}`, days } : undefined
}

export function timeOnDays(time: string, days: number[]): string {
  const [hour = '0', minute = '0'] = time.split(':')
  const field = days.length === ALL.length ? '*' : [...days].sort().join()
  return `${Number(minute)} ${Number(hour)} * * ${field}`
}
