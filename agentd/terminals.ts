/** `/v1/terminal`: shells on terminals. Each has one viewer at most, and waits for another for some minutes. */
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { AgentdError } from './agentd-errors.ts'
import { SHELL } from './command.ts'
import { isObject } from './json.ts'
import { readProcesses, sendSignal } from './processes.ts'
import { Pty, type PtyOptions, type Size } from './pty.ts'
import { switchingProtocols } from './relay.ts'
import { Scrollback } from './scrollback.ts'
import { type Agent, queryNumber, refuseUpgrade, type Service } from './server.ts'
import {
  bytesFrames,
  FrameReader,
  messageFrame,
  NO_TERMINAL,
  TERMINAL_UPGRADE,
  type TerminalEvent,
} from './terminal-frames.ts'

const AT_ONCE = 8
const SCROLLBACK_BYTES = 262_144
/** How long a shell without a viewer is kept. */
const KEPT_MS = 600_000
const UNWATCHED = 'nobody was connected'
/** How long a shell may be silent, without a byte of input or output. */
const SILENT_MS = 43_200_000
/** Input that waits for its program, beyond which no more is read from the viewer. */
const MAX_INPUT_BYTES = 65_536
/** How long to wait for the last output of a shell: its background processes may hold the terminal. */
const DRAIN_MS = 200
const MAX_SIZE = 1000
/** The exit code after SIGHUP. */
const HUNG_UP = 129

export function terminalService(agent: Agent): Service {
  /** The shells, those without a viewer for longest first. */
  const terminals = new Map<string, Terminal>()
  let opening = 0

  async function open(size: Size): Promise<Terminal> {
    const isFull = () => terminals.size + opening >= AT_ONCE
    if (isFull())
      [...terminals.values()].find(({ isWatched }) => !isWatched)?.end('another terminal was opened')
    if (isFull()) throw new AgentdError('busy', `${AT_ONCE} terminals are already open`)
    opening++
    try {
      const terminal = await Terminal.open(
        { ...size, command: [SHELL], cwd: agent.paths.root, env: environment(agent.gateway.env) },
        { ended: ({ id }) => terminals.delete(id), left: keepLast },
      )
      terminals.set(terminal.id, terminal)
      return terminal
    } finally {
      opening--
    }
  }

  /** Moves a shell that its viewer has left behind those that wait for longer. */
  function keepLast(terminal: Terminal): void {
    if (terminals.delete(terminal.id)) terminals.set(terminal.id, terminal)
  }

  async function handle(url: URL, socket: Socket, head: Buffer): Promise<void> {
    const size = sizeOf(queryNumber(url, 'columns', 80), queryNumber(url, 'rows', 24))
    const id = url.searchParams.get('terminal')
    const after = url.searchParams.has('after') ? queryNumber(url, 'after', 0) : undefined
    if (id === null) {
      const terminal = await open(size)
      if (socket.destroyed) terminal.end('its viewer left')
      else terminal.attach(socket, head)
      return
    }
    const terminal = terminals.get(id)
    if (!terminal) throw new AgentdError('not_found', NO_TERMINAL)
    terminal.attach(socket, head, after)
    await terminal.resize(size)
    if (after === undefined) await terminal.redraw()
  }

  return {
    routes: [],
    upgrades: [
      {
        path: '/v1/terminal',
        handle: ({ url }, socket, head) =>
          void handle(url, socket, head).catch((error) => {
            const code = error instanceof AgentdError ? error.code : 'internal'
            refuseUpgrade(socket, code, error.message)
          }),
      },
    ],
    async stop() {
      for (const terminal of terminals.values()) terminal.end('the agent stops')
    },
  }
}

/** The environment of console commands, on a terminal with UTF-8. */
function environment(env: Readonly<Record<string, string>>): Record<string, string> {
  const hasLocale = ['LANG', 'LC_ALL', 'LC_CTYPE'].some((name) => name in env)
  return { ...env, ...(!hasLocale && { LC_CTYPE: 'C.UTF-8' }), TERM: 'xterm-256color' }
}

const sizeOf = (columns: number, rows: number): Size => {
  const within = (cells: number) => Math.min(Math.max(cells, 1), MAX_SIZE)
  return { columns: within(columns), rows: within(rows) }
}

interface Listeners {
  /** The shell has ended, and its end was told to a viewer. */
  ended(terminal: Terminal): void
  /** The viewer has left a running shell. */
  left(terminal: Terminal): void
}

class Terminal {
  readonly id = randomUUID()
  readonly #pty: Pty
  readonly #on: Listeners
  readonly #scrollback: Scrollback
  #viewer: Socket | undefined
  /** Ends a shell without a viewer. */
  #unwatched: NodeJS.Timeout
  #silent: NodeJS.Timeout
  #exit: (TerminalEvent & { type: 'exit' }) | undefined

  static async open(options: PtyOptions, on: Listeners): Promise<Terminal> {
    const scrollback = new Scrollback(SCROLLBACK_BYTES)
    let terminal: Terminal | undefined
    const pty = await Pty.open(options, {
      output: (bytes) => (terminal ? terminal.#show(bytes) : scrollback.push(bytes)),
      drain: () => terminal?.resumeInput(),
    })
    terminal = new Terminal(pty, scrollback, on)
    return terminal
  }

  private constructor(pty: Pty, scrollback: Scrollback, on: Listeners) {
    this.#pty = pty
    this.#scrollback = scrollback
    this.#on = on
    this.#unwatched = this.#later(KEPT_MS, UNWATCHED)
    this.#silent = this.#later(SILENT_MS, 'nothing was typed or shown')
    void pty.exited.then((code) => this.#exited(code))
  }

  get isWatched(): boolean {
    return this.#viewer !== undefined
  }

  /** Joins the shell with a connection, which replaces the previous one. */
  attach(socket: Socket, head: Buffer, after?: number): void {
    this.#viewer?.end(messageFrame({ type: 'taken' }))
    this.#viewer = socket
    clearTimeout(this.#unwatched)
    socket.setNoDelay(true)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => this.#left(socket))
    socket.on('drain', () => this.#viewer === socket && this.#pty.resume())
    const frames = new FrameReader()
    const read = (chunk: Buffer) => {
      try {
        for (const frame of frames.push(chunk)) {
          if ('bytes' in frame) this.#type(frame.bytes)
          else this.#obey(frame.message)
        }
      } catch {
        socket.destroy()
      }
    }
    const { from, bytes } = this.#scrollback.since(after)
    socket.write(switchingProtocols(TERMINAL_UPGRADE))
    socket.write(messageFrame({ type: 'ready', terminal: this.id, from }))
    if (bytes.length > 0 && !socket.write(bytesFrames(bytes))) this.#pty.pause()
    if (this.#exit) this.#tell(this.#exit)
    read(head)
    socket.on('data', (chunk: Buffer) => this.#viewer === socket && read(chunk))
  }

  /** Changes the size, if a process can be started for that. */
  async resize(size: Size): Promise<void> {
    await this.#pty.resize(size).catch(() => {})
  }

  /** Makes the program in the foreground draw its screen again. */
  async redraw(): Promise<void> {
    const [shell] = await readProcesses([this.#pty.pid]).catch(() => [])
    if (shell && shell.foreground > 0) sendSignal(-shell.foreground, 'SIGWINCH')
  }

  /** Reads from the viewer again, once the program has read what was typed. */
  private resumeInput(): void {
    this.#viewer?.resume()
  }

  /** Hangs up. */
  end(reason: string): void {
    this.#exit ??= { type: 'exit', code: HUNG_UP, reason }
    this.#pty.close()
    this.#tell(this.#exit)
  }

  #show(bytes: Buffer): void {
    this.#silent.refresh()
    this.#scrollback.push(bytes)
    if (this.#viewer && !this.#viewer.write(bytesFrames(bytes))) this.#pty.pause()
  }

  #type(bytes: Buffer): void {
    this.#silent.refresh()
    this.#pty.write(bytes)
    if (this.#pty.inputBytes > MAX_INPUT_BYTES) this.#viewer?.pause()
  }

  #obey(message: unknown): void {
    if (!isObject(message) || message.type !== 'resize') return
    const { columns, rows } = message
    if (typeof columns === 'number' && typeof rows === 'number')
      void this.resize(sizeOf(Math.trunc(columns), Math.trunc(rows)))
  }

  #left(socket: Socket): void {
    if (this.#viewer !== socket) return
    this.#viewer = undefined
    if (this.#exit) return
    this.#pty.resume()
    this.#unwatched = this.#later(KEPT_MS, UNWATCHED)
    this.#on.left(this)
  }

  async #exited(code: number): Promise<void> {
    if (this.#exit) return
    this.#pty.resume()
    await this.#pty.drained(DRAIN_MS)
    this.#pty.close()
    this.#exit ??= { type: 'exit', code }
    // Without a viewer, its end is kept for the next one.
    if (this.#viewer) this.#tell(this.#exit)
  }

  #tell(exit: TerminalEvent): void {
    clearTimeout(this.#unwatched)
    clearTimeout(this.#silent)
    this.#viewer?.end(messageFrame(exit))
    this.#viewer = undefined
    this.#on.ended(this)
  }

  #later(ms: number, reason: string): NodeJS.Timeout {
    return setTimeout(() => this.end(`${reason} for ${ms / 60_000} minutes`), ms).unref()
  }
}
