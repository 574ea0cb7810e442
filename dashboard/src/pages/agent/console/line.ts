/** Edits the line that is being typed, key by key. It knows no terminal: `draw` shows the line. */

/** A line that the terminal ends, or what else was asked for. */
export type Typed = { kind: 'line'; line: string } | { kind: 'cancel' } | { kind: 'clear' }

/** Lines that are kept. */
const MOST = 500

/** Around what is pasted, where a program asked for it. */
const PASTE = '\x1b[200~'
const PASTE_END = '\x1b[201~'

/** Control sequences that keys send, also where a program has switched the terminal's mode. */
const KEYS: Record<string, string> = {
  '\x1b[A': 'up',
  '\x1bOA': 'up',
  '\x1b[B': 'down',
  '\x1bOB': 'down',
  '\x1b[C': 'right',
  '\x1bOC': 'right',
  '\x1b[D': 'left',
  '\x1bOD': 'left',
  '\x1b[H': 'home',
  '\x1bOH': 'home',
  '\x1b[F': 'end',
  '\x1bOF': 'end',
  '\x1b[3~': 'delete',
  '\x01': 'home',
  '\x05': 'end',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x15': 'cut-before',
  '\x17': 'cut-word',
}

/** A line with a cursor, and the lines before it. */
export class Line {
  /** Characters, as `Array.from` has them. */
  #text: string[] = []
  #at = 0
  readonly #history: string[]
  /** Where ↑ and ↓ are; the length of the history is the line that is being typed. */
  #shown: number
  #draft = ''

  /** @param history the lines that were sent, the oldest first; it is added to. */
  constructor(history: string[]) {
    this.#history = history
    this.#shown = history.length
  }

  get text(): string {
    return this.#text.join('')
  }
  get before(): string {
    return this.#text.slice(0, this.#at).join('')
  }

  /**
   * Takes what the terminal sent: a key, or a text that was pasted.
   * @returns what was asked for, and what of the text is still to be taken.
   */
  take(data: string): { typed?: Typed; rest: string } {
    if (data.startsWith(PASTE)) return this.#insert(data.slice(PASTE.length).replace(PASTE_END, ''))
    const key = KEYS[data]
    if (key) {
      this.#press(key)
      return { rest: '' }
    }
    if (data === '\x03') {
      this.#set('')
      return { typed: { kind: 'cancel' }, rest: '' }
    }
    if (data === '\x0c') return { typed: { kind: 'clear' }, rest: '' }
    // Another key; or an answer of the terminal to what a program said, which must never become a command.
    if (data.startsWith('\x1b')) return { rest: '' }
    return this.#insert(data)
  }

  /** Text up to the end of its first line, which is sent. */
  #insert(text: string): { typed?: Typed; rest: string } {
    const end = text.search(/[\r\n]/)
    const line = end < 0 ? text : text.slice(0, end)
    const added = Array.from(line.replaceAll('\t', ' ').replace(/\p{Cc}/gu, ''))
    this.#text.splice(this.#at, 0, ...added)
    this.#at += added.length
    if (end < 0) return { rest: '' }
    const sent = this.text
    this.#keep(sent)
    this.#set('')
    return { typed: { kind: 'line', line: sent }, rest: text.slice(end).replace(/^(\r\n|\r|\n)/, '') }
  }

  #keep(line: string): void {
    if (line.trim() !== '' && line !== this.#history.at(-1)) this.#history.push(line)
    if (this.#history.length > MOST) this.#history.shift()
    this.#shown = this.#history.length
  }

  #press(key: string): void {
    const { length } = this.#text
    switch (key) {
      case 'up':
        this.#show(this.#shown - 1)
        return
      case 'down':
        this.#show(this.#shown + 1)
        return
      case 'left':
        this.#at = Math.max(0, this.#at - 1)
        return
      case 'right':
        this.#at = Math.min(length, this.#at + 1)
        return
      case 'home':
        this.#at = 0
        return
      case 'end':
        this.#at = length
        return
      case 'delete':
        this.#text.splice(this.#at, 1)
        return
      case 'backspace':
        this.#cut(this.#at - 1)
        return
      case 'cut-before':
        this.#cut(0)
        return
      case 'cut-word':
        this.#cut(this.before.trimEnd().lastIndexOf(' ') + 1)
        return
    }
  }

  /** Removes what is from there to the cursor. */
  #cut(from: number): void {
    const start = Math.max(0, from)
    this.#text.splice(start, this.#at - start)
    this.#at = start
  }

  #show(index: number): void {
    if (index < 0 || index > this.#history.length) return
    if (this.#shown === this.#history.length) this.#draft = this.text
    this.#set(this.#history[index] ?? this.#draft)
    this.#shown = index
  }

  #set(text: string): void {
    this.#text = Array.from(text)
    this.#at = this.#text.length
    this.#shown = this.#history.length
  }
}

const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff01-\uff60]|\p{Emoji_Presentation}/u

/** Columns that a text takes. */
export function width(text: string): number {
  let columns = 0
  for (const character of text) columns += /\p{M}/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return columns
}
