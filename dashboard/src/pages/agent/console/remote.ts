/** A terminal of an agent in xterm: connects, and connects again to the same shell. */
import type { Terminal } from '@xterm/xterm'
import { texts } from '../../../texts.ts'

const { console: words } = texts
const PIECE_BYTES = 16_384
/** Output that xterm has not drawn yet. A browser cannot stop reading a WebSocket, so it is closed for a moment. */
const MAX_PENDING = 4_194_304
const RETRIES_MS = [0, 500, 1000, 2000, 4000, 8000, 15_000]
/** The close code after which another connection would be refused too. */
const POLICY = 1008
const DIM = '\x1b[2m'
const PLAIN = '\x1b[0m'

export type State = 'connecting' | 'open' | 'ended'

type Message =
  | { type: 'ready'; terminal: string; from: number }
  | { type: 'exit'; code: number; reason?: string }
  | { type: 'taken' }
  | { type: 'error'; code: string; message: string }

/** The shell of an agent in this tab, which outlives navigation and reloads. */
const idOf = (agentId: string) => sessionStorage.getItem(`terminal:${agentId}`) ?? undefined

export class Remote {
  readonly #terminal: Terminal
  readonly #agentId: string
  readonly #onState: (state: State) => void
  readonly #encoder = new TextEncoder()
  #socket: WebSocket | undefined
  #id: string | undefined
  /** The position in the output of the shell; undefined if nothing of it is shown yet. */
  #position: number | undefined
  #pending = 0
  /** True while too much output waits to be drawn. */
  #isFull = false
  #failed = 0
  #retry: number | undefined
  #isOver = false

  constructor(terminal: Terminal, agentId: string, onState: (state: State) => void) {
    this.#terminal = terminal
    this.#agentId = agentId
    this.#onState = onState
    this.#id = idOf(agentId)
    terminal.onData((text) => this.#type(this.#encoder.encode(text)))
    terminal.onBinary((text) => this.#type(Uint8Array.from(text, (byte) => byte.charCodeAt(0))))
    terminal.onResize(({ cols, rows }) => this.#send(JSON.stringify({ type: 'resize', columns: cols, rows })))
    this.#connect()
  }

  /** Opens a new shell; the present one ends without a client. */
  renew(): void {
    this.#keep(undefined)
    this.#isOver = false
    this.#failed = 0
    this.#terminal.reset()
    this.#close()
    this.#connect()
  }

  /** Leaves the shell, which waits for some minutes. */
  close(): void {
    this.#isOver = true
    this.#close()
  }

  #close(): void {
    clearTimeout(this.#retry)
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
  }

  #connect(): void {
    this.#onState('connecting')
    const { cols, rows } = this.#terminal
    const query = new URLSearchParams({ columns: `${cols}`, rows: `${rows}` })
    if (this.#id) query.set('terminal', this.#id)
    if (this.#id && this.#position !== undefined) query.set('after', `${this.#position}`)
    const url = new URL(`/v0/agents/${this.#agentId}/console/terminal?${query}`, location.href)
    url.protocol = url.protocol.replace('http', 'ws')
    const socket = new WebSocket(url)
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return
      if (typeof data === 'string') this.#read(JSON.parse(data))
      else this.#show(new Uint8Array(data))
    }
    socket.onclose = ({ code, reason }) => {
      if (socket !== this.#socket) return
      this.#socket = undefined
      if (code === POLICY) this.#end(reason)
      if (!this.#isOver) this.#connectLater()
    }
  }

  #connectLater(): void {
    const wait = RETRIES_MS[this.#failed++]
    if (wait === undefined) {
      // A reload finds the shell, if it is still there.
      const id = this.#id
      this.#end(words.lost)
      this.#keep(id)
      return
    }
    this.#onState('connecting')
    this.#retry = window.setTimeout(() => this.#connect(), wait)
  }

  #read(message: Message): void {
    if (message.type === 'ready') {
      this.#failed = 0
      this.#keep(message.terminal)
      this.#position = message.from
      this.#onState('open')
    } else if (message.type === 'exit') this.#end(message.reason ?? words.exited(message.code))
    else if (message.type === 'taken') this.#end(words.taken)
    else if (message.code === 'not_found' && this.#id) {
      // The shell has ended while nobody was connected.
      this.#keep(undefined)
      this.#failed = 0
    } else if (message.code !== 'agent_not_ready') this.#end(message.message)
  }

  #show(bytes: Uint8Array): void {
    this.#position = (this.#position ?? 0) + bytes.length
    this.#pending += bytes.length
    if (this.#pending > MAX_PENDING) {
      this.#isFull = true
      this.#close()
    }
    this.#terminal.write(bytes, () => {
      this.#pending -= bytes.length
      if (!this.#isFull || this.#pending > 0) return
      this.#isFull = false
      if (!this.#isOver) this.#connect()
    })
  }

  #end(why: string): void {
    this.#isOver = true
    this.#keep(undefined)
    this.#terminal.write(`\r\n${DIM}[${why.replace(/\p{Cc}/gu, '')}]${PLAIN}\r\n`)
    this.#onState('ended')
  }

  #keep(id: string | undefined): void {
    this.#id = id
    if (id) sessionStorage.setItem(`terminal:${this.#agentId}`, id)
    else {
      this.#position = undefined
      sessionStorage.removeItem(`terminal:${this.#agentId}`)
    }
  }

  #type(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) this.#send(bytes.slice(at, at + PIECE_BYTES))
  }

  #send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data)
  }
}
