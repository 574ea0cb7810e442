/** The terminal's abilities, and texts for it. */
import { stripVTControlCharacters, styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

export const isTerminal = (stream: { isTTY?: boolean } = process.stdout): boolean => stream.isTTY === true

/** Colors, if this stream is a terminal and `NO_COLOR` is not set. */
export function paint(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  const isPlain = !isTerminal(stream) || Boolean(process.env.NO_COLOR) || process.env.TERM === 'dumb'
  return isPlain || text === '' ? text : styleText(style, text, { validateStream: false })
}

/** The columns of the terminal. */
export const columns = (stream: NodeJS.WriteStream = process.stdout): number => stream.columns || 80

/** Third-party text, which must not move the cursor, begin a line, or change colors. */
export const harmless = (text: string): string => stripVTControlCharacters(text).replace(/\p{Cc}+/gu, ' ')

/** The same, with its lines. */
export const harmlessLines = (text: string): string =>
  stripVTControlCharacters(text).replace(/(?![\n\t])\p{Cc}+/gu, '')

const WIDE = /[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}]/u
let segments: Intl.Segmenter | undefined

/** The columns that a text takes, without its colors. */
export function widthOf(text: string): number {
  const plain = stripVTControlCharacters(text)
  if (/^[\x20-\x7e]*$/.test(plain)) return plain.length
  // Created on demand: it takes some milliseconds.
  segments ??= new Intl.Segmenter()
  let width = 0
  for (const { segment } of segments.segment(plain)) width += WIDE.test(segment) ? 2 : 1
  return width
}

export const padEnd = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - widthOf(text)))
