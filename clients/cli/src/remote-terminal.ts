/** The user's terminal joined with one of an agent, which survives lost connections. */
import { setTimeout as delay } from 'node:timers/promises'
import { EXIT } from './errors.ts'

export interface RemoteTerminal {
  /** The WebSocket's URL, without a query. */
  url: string
  /** Sent in headers: a URL could end up in a log. */
  headers: Record<string, string>
}

/** How a terminal ended: the exit code of its shell, or the reason. */
export type End = { code: number; reason?: string } | { problem: string; code: string }

type Message =
  | { type: 'ready'; terminal: string; from: number }
  | { type: 'exit'; code: number; reason?: string }
  | { type: 'taken' }
  | { type: 'error'; code: string; message: string }

const CTRL_C = 0x03
/** The letter h. */
const ENTER = 0x68
/** The close code after which another connection would be refused too: the key was revoked. */
const POLICY = 1008
const PIECE_BYTES = 16_384
/** Bytes typed or pasted that wait for the connection, beyond which no more is read. */
const MAX_WAITING = 1_048_576
const RETRIES_MS = [0, 500, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000]
/** Resets colors, the cursor, key and mouse modes. */
const RESET = '\x1b[0m\x1b[?25h\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l'
/** Enters the alternate screen with `h`, and leaves it with `l`. */
const ALTERNATE = '\x1b[?1049'

/** Node's WebSocket takes headers, which the standard has not. */
type SocketClass = new (url: string, options: { headers: Record<string, string> }) => WebSocket

/**
 * Joins stdin and stdout with a new terminal until its shell ends, in raw mode: all keys go to the agent. Connects again
 * if the connection is lost. The user's terminal is restored, however this ends.
 */
export async function joinTerminal(remote: RemoteTerminal): Promise<End> {
  const { stdin, stdout } = process
  const session = new Session(remote)
  const restore = () => {
    stdin.setRawMode(false)
    // Outside the alternate screen, leaving it would move the cursor.
    stdout.write(RESET + (session.isAlternate ? `${ALTERNATE}l` : ''))
  }
  const killed = (signal: NodeJS.Signals) => {
    restore()
    process.removeListener(signal, killed)
    process.kill(process.pid, signal)
  }
  process.once('exit', restore)
  for (const signal of KILLED) process.once(signal, killed)
  stdin.setRawMode(true).resume().on('data', session.type)
  stdout.on('resize', session.resize)
  try {
    return await session.run()
  } finally {
    stdin.off('data', session.type).pause()
    stdout.off('resize', session.resize)
    for (const signal of KILLED) process.removeListener(signal, killed)
    process.removeListener('exit', restore)
    restore()
  }
}

const KILLED = ['SIGTERM', 'SIGHUP'] as const

class Session {
  /** True while a program shows the alternate screen. */
  isAlternate = false
  readonly #remote: RemoteTerminal
  #socket: WebSocket | undefined
  #terminal: string | undefined
  /** The position in the output of the terminal. */
  #position = 0
  #end: End | undefined
  readonly #left = new AbortController()

  constructor(remote: RemoteTerminal) {
    this.#remote = remote
  }

  /** Connects, again and again, until the terminal has ended. */
  async run(): Promise<End> {
    for (let failed = 0; ; failed++) {
      const wait = RETRIES_MS[failed]
      if (wait === undefined) return { problem: 'the connection is lost', code: 'lost' }
      if (failed === 2)
        process.stdout.write('\r\n\x1b[2m[the connection is lost: trying again, Ctrl-C gives up]\x1b[0m\r\n')
      await delay(wait, undefined, { signal: this.#left.signal }).catch(() => {})
      if (this.#end) return this.#end
      const before = this.#position
      const hadTerminal = this.#terminal
      await this.#connect()
      if (this.#end) return this.#end
      // A connection that worked is a reason to try for longer.
      if (this.#terminal !== hadTerminal || this.#position > before) failed = 0
    }
  }

  readonly type = (bytes: Buffer): void => {
    const socket = this.#socket
    // What is typed while the connection is lost would arrive in another moment than it was meant for.
    if (socket?.readyState !== WebSocket.OPEN) {
      if (bytes.includes(CTRL_C)) this.#leave()
      return
    }
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) socket.send(bytes.subarray(at, at + PIECE_BYTES))
    if (socket.bufferedAmount > MAX_WAITING) void this.#drain(socket)
  }

  /** Stops trying. */
  #leave(): void {
    this.#end = { code: EXIT.interrupted }
    this.#left.abort()
    this.#socket?.close()
  }

  readonly resize = (): void => {
    const socket = this.#socket
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'resize', ...size() }))
  }

  /** Stops reading what is pasted until the connection has caught up. */
  async #drain(socket: WebSocket): Promise<void> {
    process.stdin.pause()
    while (socket.readyState === WebSocket.OPEN && socket.bufferedAmount > MAX_WAITING / 2) await delay(20)
    process.stdin.resume()
  }

  /** Resolves when the connection has ended, or could not be opened. */
  #connect(): Promise<void> {
    const { columns, rows } = size()
    const query = new URLSearchParams({ columns: `${columns}`, rows: `${rows}` })
    if (this.#terminal) query.set('terminal', this.#terminal)
    if (this.#terminal) query.set('after', `${this.#position}`)
    const Socket = WebSocket as unknown as SocketClass
    const socket = new Socket(`${this.#remote.url}?${query}`, { headers: this.#remote.headers })
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    return new Promise((resolve) => {
      socket.addEventListener('message', ({ data }) => {
        if (typeof data === 'string') return this.#read(JSON.parse(data))
        this.#position += data.byteLength
        // Waits for a slow terminal: nothing is read from the connection meanwhile.
        const bytes = Buffer.from(data)
        const last = bytes.lastIndexOf(ALTERNATE)
        if (last >= 0) this.isAlternate = bytes[last + ALTERNATE.length] === ENTER
        process.stdout.write(bytes)
      })
      socket.addEventListener('error', () => socket.close())
      socket.addEventListener('close', ({ code, reason }) => {
        if (code === POLICY) this.#end ??= { problem: reason, code: 'refused' }
        resolve()
      })
    })
  }

  #read(message: Message): void {
    if (message.type === 'ready') {
      this.#terminal = message.terminal
      this.#position = message.from
    } else if (message.type === 'exit') {
      const { code, reason } = message
      this.#end = { code, ...(reason !== undefined && { reason }) }
    } else if (message.type === 'taken')
      this.#end = { problem: 'the terminal was opened elsewhere', code: 'taken' }
    else if (!this.#mayRetry(message.code)) this.#end = { problem: message.message, code: message.code }
  }

  /** An agent that restarts is not ready for some seconds; a first connection fails at once. */
  #mayRetry(code: string): boolean {
    return this.#terminal !== undefined && code === 'agent_not_ready'
  }
}

const size = () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 })
