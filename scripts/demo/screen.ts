/** The demo's terminal: one line for each step, updated while the step runs. Outside a terminal, plain lines. */
import { styleText } from 'node:util'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 80
/** How often a long step reports its progress if lines cannot be overwritten. */
const PLAIN_MS = 2000
const LABEL_WIDTH = 12

/** Sets what to show of a step from now on. */
export type Live = (text: () => string) => void

export class Screen {
  readonly #tty = process.stdout.isTTY === true
  readonly #aborted: Promise<never>

  /** @param signal ends a running step, even one that does not know of it. */
  constructor(signal?: AbortSignal) {
    const { promise, reject } = Promise.withResolvers<never>()
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    promise.catch(() => {})
    this.#aborted = promise
  }

  title(text: string): void {
    this.#write(`\n  ${styleText('bold', text)}\n\n`)
  }

  /** Separates the steps that follow from those before. */
  section(text: string): void {
    this.#write(`\n  ${styleText('bold', text)}\n`)
  }

  /** Runs one step of the demo. It resolves to its result and the text to show for it. */
  async step<T>(label: string, run: (live: Live) => Promise<[result: T, text: string]>): Promise<T> {
    const started = performance.now()
    const name = label.padEnd(LABEL_WIDTH)
    let text = () => ''
    let frame = 0
    const draw = () => {
      if (this.#tty)
        this.#drawOver(`  ${styleText('cyan', FRAMES[frame++ % FRAMES.length] ?? '')} ${name}${text()}`)
      else if (text()) this.#write(`  … ${name}${text()}\n`)
    }
    const timer = setInterval(draw, this.#tty ? FRAME_MS : PLAIN_MS)
    if (this.#tty) draw()
    try {
      const show: Live = (shown) => {
        text = shown
      }
      const [result, done] = await Promise.race([run(show), this.#aborted])
      const seconds = styleText('dim', `${((performance.now() - started) / 1000).toFixed(1)} s`)
      this.#end(`  ${styleText('green', '✓')} ${name}${done}  ${seconds}`)
      return result
    } catch (error) {
      this.#end(`  ${styleText('red', '✗')} ${name}${text()}`)
      throw error
    } finally {
      clearInterval(timer)
    }
  }

  /** Something more about the step above. */
  detail(text: string): void {
    this.#write(`    ${' '.repeat(LABEL_WIDTH)}${styleText('dim', text)}\n`)
  }

  summary(text: string): void {
    this.#write(`\n  ${styleText(['green', 'bold'], text)}\n\n`)
  }

  failed(reason: unknown): void {
    const text = reason instanceof Error ? reason.message : String(reason)
    this.#write(`\n  ${styleText('red', text)}\n\n`)
  }

  /** Leaves the terminal as it was. */
  close(): void {
    if (this.#tty) this.#write('\x1b[?7h\x1b[?25h')
  }

  /** Overwrites the previous line, with the cursor hidden and without wrapping, so that it stays one line. */
  #drawOver(line: string): void {
    this.#write(`\x1b[?25l\x1b[?7l\r\x1b[2K${line}`)
  }

  #end(line: string): void {
    this.#write(this.#tty ? `\r\x1b[2K\x1b[?7h\x1b[?25h${line}\n` : `${line}\n`)
  }

  #write(text: string): void {
    process.stdout.write(text)
  }
}

/** `1 file`, `2,612 files`. */
export function count(n: number, noun: string): string {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`
}

/** `73 bytes`, `3.6 kB`, `200.0 MB`. */
export function bytes(n: number): string {
  if (n < 1000) return `${Math.round(n)} bytes`
  return n < 1e5 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`
}
