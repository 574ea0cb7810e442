/** Values of options. */
import type { Option } from './command.ts'
import { UsageError } from './errors.ts'

export const LIMIT = {
  about: 'at most so many; default 100',
  value: 'count',
  short: 'n',
} as const satisfies Option
export const NO_WAIT = { about: 'do not wait for the end' } as const satisfies Option

/** @throws UsageError */
export function count(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UsageError(`${text} must be a whole number, at least 1`)
  return Number(text)
}

/** `--keyvalue` options as an object. @throws UsageError */
export function pairs(texts: string[]): Record<string, string> | undefined {
  if (texts.length === 0) return undefined
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw new UsageError(`${text} must be like name=value`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}
