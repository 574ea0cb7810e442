/** The console: a prompt in a terminal, and one command at a time in the agent. */
import type { Terminal } from '@xterm/xterm'
import { texts } from '../../../texts.ts'
import { Line, width } from './line.ts'
import { cdArgument, ROOT, resolveFolder, shownFolder } from './path.ts'
import { runCommand } from './run.ts'

const { console: words } = texts
const RED = '\x1b[31m'
const DIM = '\x1b[2m'
const PLAIN = '\x1b[0m'
/** Resets what a program may have left behind: colours, hidden cursor, key and mouse modes, alternate screen. */
const RESET = '\x1b[!p\x1b[0m\x1b[?25h\x1b[?1l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?2004l\x1b[?47l'

const CLEAR = '\x1b[H\x1b[2J\x1b[3J'

/** The state of a console that survives navigation to another page. */
interface Kept {
  history: string[]
  cwd: string
}
const kept = new Map<string, Kept>()

export class Shell {
  readonly #terminal: Terminal
  readonly #agentId: string
  readonly #onBusy: (busy: boolean) => void
  readonly #kept: Kept
  readonly #line: Line
  /** The running command. */
  #running: AbortController | undefined
  /** True while the prompt is shown. Otherwise a command runs, or its last output is still being written. */
  #isReady = true
  /** Input typed during a command. */
  #waiting: string[] = []
  /** The row of the cursor, relative to the first row of the prompt. */
  #row = 0
  #isClosed = false

  constructor(terminal: Terminal, agentId: string, onBusy: (busy: boolean) => void) {
    this.#terminal = terminal
    this.#agentId = agentId
    this.#onBusy = onBusy
    this.#kept = kept.get(agentId) ?? { history: [], cwd: ROOT }
    kept.set(agentId, this.#kept)
    this.#line = new Line(this.#kept.history)
    terminal.onData((data) => this.take(data))
    terminal.onResize(() => {
      if (this.#isReady) this.#draw()
    })
    this.#draw()
  }

  /** Processes typed or pasted input. */
  take(data: string): void {
    if (!this.#isReady) {
      if (data === '\x03') this.cancel()
      else this.#waiting.push(data)
      return
    }
    const { typed, rest } = this.#line.take(data)
    if (rest !== '') this.#waiting.unshift(rest)
    if (typed?.kind === 'line') {
      this.#isReady = false
      void this.#run(typed.line)
    } else if (typed?.kind === 'cancel') {
      this.#isReady = false
      this.#terminal.write('^C')
      this.#prompt()
    } else if (typed?.kind === 'clear') this.clear()
    else this.#draw()
  }

  /** Ends the running command, and drops input typed during it. */
  cancel(): void {
    this.#waiting = []
    this.#running?.abort()
  }

  clear(): void {
    if (!this.#isReady) return
    this.#terminal.write(CLEAR)
    this.#row = 0
    this.#draw()
  }

  close(): void {
    this.#isClosed = true
    this.cancel()
  }

  async #run(line: string): Promise<void> {
    this.#terminal.write(`${this.#redrawn(line)}\r\n`)
    this.#row = 0
    const word = line.trim()
    if (word === '' || word === 'clear') {
      this.#prompt()
      if (word === 'clear') this.#terminal.write(CLEAR)
      return
    }
    const running = new AbortController()
    this.#running = running
    this.#onBusy(true)
    try {
      await this.#execute(line, running.signal)
    } catch (error) {
      const { message } = error as Error
      this.#terminal.write(running.signal.aborted ? '^C' : `${RED}${plain(message)}${PLAIN}`)
    }
    this.#running = undefined
    if (this.#isClosed) return
    this.#onBusy(false)
    this.#terminal.write(RESET)
    this.#prompt()
  }

  async #execute(line: string, signal: AbortSignal): Promise<void> {
    const { cwd } = this.#kept
    const argument = cdArgument(line)
    const folder = argument === undefined ? cwd : resolveFolder(cwd, argument)
    const command = argument === undefined ? line : ':'
    const end = await runCommand(
      this.#agentId,
      { command, cwd: folder },
      (text) => this.#terminal.write(text),
      signal,
    )
    this.#kept.cwd = folder
    const notes = [
      end.truncated && words.truncated,
      end.timedOut && words.timedOut,
      end.exitCode !== 0 && words.exitCode(end.exitCode),
    ].filter(Boolean)
    if (notes.length > 0) this.#note(`${DIM}${notes.join(' · ')}${PLAIN}`)
  }

  /** Writes a line from the console itself. */
  #note(text: string): void {
    this.#terminal.write('', () => {
      this.#terminal.write(`${this.#terminal.buffer.active.cursorX > 0 ? '\r\n' : ''}${RESET}${text}`)
    })
  }

  /** Shows a new prompt on a separate line, then processes input typed during the command. */
  #prompt(): void {
    // The first callback runs once earlier output is parsed, the second once the output of other callbacks is.
    this.#terminal.write('', () =>
      this.#terminal.write('', () => {
        if (this.#terminal.buffer.active.cursorX > 0) this.#terminal.write('\r\n')
        this.#row = 0
        this.#isReady = true
        this.#draw()
        while (this.#isReady && this.#waiting.length > 0) this.take(this.#waiting.shift() as string)
      }),
    )
  }

  get #prefix(): string {
    return `${plain(shownFolder(this.#kept.cwd))} $ `
  }

  #draw(): void {
    this.#terminal.write(this.#redrawn(this.#line.text, this.#line.before))
  }

  /** The output that redraws prompt and line in place, with the cursor at the end of `before`. */
  #redrawn(line: string, before = line): string {
    const columns = this.#terminal.cols
    const all = width(this.#prefix) + width(line)
    const at = width(this.#prefix) + width(before)
    const up = this.#row > 0 ? `\x1b[${this.#row}A` : ''
    const folder = this.#prefix.slice(0, -2)
    // A line that ends at the last column leaves the cursor on it until something follows.
    const wrap = all > 0 && all % columns === 0 ? ' \b' : ''
    const back = Math.floor(all / columns) - Math.floor(at / columns)
    this.#row = Math.floor(at / columns)
    const right = at % columns > 0 ? `\x1b[${at % columns}C` : ''
    return (
      `${up}\r\x1b[J\x1b[36m${folder}${PLAIN}$ ${line}${wrap}` +
      `${back > 0 ? `\x1b[${back}A` : ''}\r${right}`
    )
  }
}

/** Third-party text without control characters, which a terminal would obey. */
const plain = (text: string): string => text.replace(/\p{Cc}/gu, '')
