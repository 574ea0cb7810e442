/** Edits the typed line, key by key. It does not depend on a terminal: the console draws the line. */

/** A finished line, or another request. */
export type Typed = { kind: 'line'; line: string } | { kind: 'cancel' } | { kind: 'clear' }

/** The most lines that the history keeps. */
const MOST = 500

/** Markers around pasted text, if a program asked for them. */
const PASTE = '\x1b[200~'
const PASTE_END = '\x1b[201~'

/** Control sequences of keys, in every mode to which a program may switch the terminal. */
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

/** A line with a cursor, and the history. */
export class Line {
  /** The characters, split by `Array.from`. */
  #text: string[] = []
  #at = 0
  readonly #history: string[]
  /** The position of ↑ and ↓ in the history; the length of the history stands for the typed line. */
  #shown: number
  #draft = ''

  /** @param history the sent lines, oldest first; new lines are added to it. */
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
   * Processes input from the terminal: a key, or pasted text.
   * @returns what was requested, and the rest of the text, which is still to be processed.
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
    // Another key, or the terminal's response to a program, which must never become a command.
    if (data.startsWith('\x1b')) return { rest: '' }
    return this.#insert(data)
  }

  /** Inserts text up to the end of its first line, which is sent. */
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

  /** Removes the text between `from` and the cursor. */
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

/** The width of a text in columns. */
export function width(text: string): number {
  let columns = 0
  for (const character of text) columns += /\p{M}/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return columns
}
