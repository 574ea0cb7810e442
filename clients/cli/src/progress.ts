/** A line on stderr that shows what a command waits for. It is drawn on terminals only. */
import type { Operation } from '../../typescript/src/index.ts'
import { bytes } from './format.ts'
import { columns, harmless, isTerminal, paint } from './terminal.ts'

const FRAMES = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏']
const EVERY_MS = 80
const BAR = 24

export class Progress implements Disposable {
  #text: string
  #share: number | undefined
  #frame = 0
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(text: string) {
    this.#text = text
    if (!isTerminal(process.stderr) || process.env.TERM === 'dumb') return
    process.stderr.write('\x1b[?25l')
    this.#draw()
    this.#timer = setInterval(() => this.#draw(), EVERY_MS)
    this.#timer.unref()
  }

  /** @param share of the work that is done, from 0 to 1. */
  show(text: string, share?: number): void {
    this.#text = harmless(text)
    this.#share = share
  }

  /** For `onProgress` of `waitForOperation`. */
  readonly operation = ({ kind, state, step, progress }: Operation): void => {
    const { bytes: done, total_bytes: total } = (progress ?? {}) as Record<string, number | undefined>
    const what = `${kind} ${step ?? state}`
    if (done && total) this.show(`${what}  ${bytes(done)} of ${bytes(total)}`, done / total)
    else this.show(done ? `${what}  ${bytes(done)}` : what)
  }

  /** For `onProgress` of `upload`. */
  sent(name: string): (sent: number, total: number) => void {
    return (sent, total) =>
      this.show(`${name}  ${bytes(sent)} of ${bytes(total)}`, total === 0 ? 1 : sent / total)
  }

  /** Removes the line. */
  [Symbol.dispose](): void {
    if (!this.#timer) return
    clearInterval(this.#timer)
    this.#timer = undefined
    process.stderr.write('\r\x1b[K\x1b[?25h')
  }

  #draw(): void {
    const frame = FRAMES[this.#frame++ % FRAMES.length] ?? ''
    const bar = this.#share === undefined ? '' : `${barOf(this.#share)} `
    const room = columns(process.stderr) - 3 - (bar ? BAR + 6 : 0)
    const text = Array.from(this.#text).slice(0, Math.max(room, 0)).join('')
    process.stderr.write(`\r\x1b[K${paint('cyan', frame, process.stderr)} ${bar}${text}`)
  }
}

function barOf(share: number): string {
  const full = Math.round(Math.min(Math.max(share, 0), 1) * BAR)
  const percent = `${Math.floor(share * 100)}`.padStart(3)
  return `${'█'.repeat(full)}${paint('dim', '░'.repeat(BAR - full), process.stderr)} ${percent}%`
}
