/** A client of an agent's terminal. */
import { type ClientOptions, WebSocket } from 'ws'
import { until } from './processes.ts'

/** Connections to the address of a replaced pod would hang for minutes. */
const OPEN_MS = 10_000

export class TerminalClient {
  readonly raw: WebSocket
  /** Everything that was shown. */
  shown = ''
  /** The received bytes. */
  bytes = 0
  readonly messages: any[] = []
  /** Resolves to the code and the reason of its close. */
  readonly closed: Promise<{ code: number; reason: string }>
  /** The status with which the upgrade was refused, or undefined once it is open. */
  readonly refused: Promise<number | undefined>

  /** @param path with the query. */
  constructor(url: string, path: string, options: ClientOptions) {
    const address = `${url.replace(/^http/, 'ws')}${path}`
    this.raw = new WebSocket(address, { handshakeTimeout: OPEN_MS, ...options })
    this.raw.on('error', () => {})
    this.raw.on('message', (data: Buffer, isBinary) => {
      if (!isBinary) return void this.messages.push(JSON.parse(String(data)))
      this.bytes += data.length
      this.shown += data
    })
    this.closed = new Promise((resolve) => {
      this.raw.once('close', (code, reason) => resolve({ code, reason: String(reason) }))
    })
    this.refused = new Promise((resolve) => {
      this.raw.once('open', () => resolve(undefined))
      this.raw.once('unexpected-response', (_request, response) => {
        resolve(response.statusCode)
        response.destroy()
      })
    })
  }

  type(text: string): void {
    this.raw.send(Buffer.from(text))
  }

  resize(columns: number, rows: number): void {
    this.raw.send(JSON.stringify({ type: 'resize', columns, rows }))
  }

  /** The first message of a type, once it has arrived. */
  message(type: string): Promise<any> {
    return until(`a message ${type}`, () => this.messages.find((message) => message.type === type))
  }

  /** Resolves once a text was shown. */
  async sees(text: string | RegExp): Promise<void> {
    const isShown = () => (typeof text === 'string' ? this.shown.includes(text) : text.test(this.shown))
    await until(`${text} is shown`, isShown).catch((error) => {
      throw new Error(`${error.message} in ${JSON.stringify(this.shown.slice(-2000))}`)
    })
  }
}
