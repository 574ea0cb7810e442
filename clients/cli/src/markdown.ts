/** Markdown for the terminal, rendered while it arrives. */
import { columns, harmlessLines, paint, widthOf } from './terminal.ts'

/** Writes Markdown as it arrives. A line is drawn again as it grows, so that marks become styles. */
export class MarkdownWriter {
  readonly #out: NodeJS.WriteStream
  readonly #isPlain: boolean
  #line = ''
  /** The terminal's lines that the unfinished line takes. */
  #drawn = 0
  #isCode = false

  constructor(out: NodeJS.WriteStream = process.stdout) {
    this.#out = out
    this.#isPlain = !out.isTTY || process.env.TERM === 'dumb'
  }

  write(text: string): void {
    const safe = this.#isPlain ? text : harmlessLines(text)
    if (this.#isPlain) {
      this.#out.write(safe)
      return
    }
    const [first = '', ...rest] = safe.split('\n')
    this.#line += first
    for (const line of rest) {
      this.#finishLine()
      this.#line = line
    }
    this.#draw()
  }

  /** Ends the text, with a line break if it has none. */
  end(): void {
    if (this.#isPlain) return
    if (this.#line !== '') this.#finishLine()
    this.#isCode = false
  }

  #finishLine(): void {
    const isFence = /^\s*(```|~~~)/.test(this.#line)
    this.#draw()
    this.#out.write('\n')
    if (isFence) this.#isCode = !this.#isCode
    this.#line = ''
    this.#drawn = 0
  }

  #draw(): void {
    const room = columns(this.#out)
    const lines = renderLine(this.#line, { isCode: this.#isCode, room })
    const up = this.#drawn > 1 ? `\x1b[${this.#drawn - 1}A` : ''
    // A line that fills the terminal's width leaves the cursor on it.
    this.#out.write(`${this.#drawn > 0 ? `\r${up}\x1b[J` : ''}${lines.join('\n')}`)
    this.#drawn = lines.length
  }
}

/** One line of Markdown as lines of a terminal. */
export function renderLine(line: string, { isCode, room }: { isCode: boolean; room: number }): string[] {
  const rest = line.trimStart()
  const indent = line.slice(0, line.length - rest.length)
  if (/^(```|~~~)/.test(rest)) return [paint('dim', rest.slice(0, room - 1))]
  if (isCode) return hardWrap(line, room - 1).map((part) => paint('cyan', part))
  const [heading] = /^#{1,6}\s/.exec(rest) ?? []
  if (heading)
    return wrap(inline(rest.slice(heading.length)), room - 1).map((part) =>
      paint(['bold', 'underline'], part),
    )
  if (/^([-*_])(\s*\1){2,}$/.test(rest)) return [paint('dim', '─'.repeat(Math.min(room - 1, 40)))]
  if (rest.startsWith('>'))
    return wrap(inline(rest.slice(1).trimStart()), room - 3).map((part) => `${paint('dim', '│')} ${part}`)
  const [bullet] = /^([-*+]|\d{1,9}[.)])\s/.exec(rest) ?? []
  if (!bullet) return wrap(inline(rest), room - 1 - indent.length).map((part) => indent + part)
  const item = rest.slice(bullet.length).trimStart()
  const [box] = /^\[[ xX]\]\s/.exec(item) ?? []
  const mark = box ? (/x/i.test(box) ? '☑' : '☐') : /\d/.test(bullet) ? bullet.trim() : '•'
  const hanging = ' '.repeat(indent.length + widthOf(mark) + 1)
  return wrap(inline(item.slice(box?.length ?? 0)), room - 1 - hanging.length).map((part, index) =>
    index === 0 ? `${indent}${paint('cyan', mark)} ${part}` : hanging + part,
  )
}

/** Marks within a line as styles; a mark that is not closed yet stays as it is. */
function inline(text: string): string {
  return text
    .split(/(`[^`]+`)/)
    .map((part) =>
      part.length > 2 && part.startsWith('`') && part.endsWith('`')
        ? paint('cyan', part.slice(1, -1).trim())
        : emphasis(part),
    )
    .join('')
}

const emphasis = (text: string): string =>
  text
    .replace(/!?\[([^[\]]+)\]\(([^()\s]+)\)/g, (_, label, url) =>
      label === url ? paint('underline', url) : `${paint('underline', label)} ${paint('dim', `(${url})`)}`,
    )
    .replace(/\*\*([^*]+)\*\*|__([^_]+)__/g, (_, star, under) => paint('bold', star ?? under))
    .replace(/(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g, (_, inner) => paint('italic', inner))
    .replace(/~~([^~]+)~~/g, (_, inner) => paint('strikethrough', inner))

/** Breaks at spaces. Styles never span words of different lines wrongly: each line is reset and continued. */
function wrap(text: string, room: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/(?<= )/)) {
    if (line !== '' && widthOf(line) + widthOf(word.trimEnd()) > room) {
      lines.push(line.trimEnd())
      line = ''
    }
    line += word
    while (widthOf(line) > room && !line.includes('\x1b')) {
      const [head = '', ...tail] = hardWrap(line, room)
      lines.push(head)
      line = tail.join('')
    }
  }
  return carryStyles([...lines, line])
}

function hardWrap(text: string, room: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const character of text) {
    if (widthOf(line) + widthOf(character) > room) {
      lines.push(line)
      line = ''
    }
    line += character
  }
  return [...lines, line]
}

/** Ends the styles of a line at its end, and continues them on the next. */
function carryStyles(lines: string[]): string[] {
  let open: string[] = []
  return lines.map((line) => {
    const before = open.join('')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the terminal's own sequences.
    for (const [code, number] of line.matchAll(/\x1b\[(\d+)m/g)) {
      const isEnd = ['0', '22', '23', '24', '29', '39'].includes(number ?? '')
      open = isEnd ? open.slice(0, -1) : [...open, code]
    }
    return before + line + (open.length > 0 ? '\x1b[0m' : '')
  })
}
