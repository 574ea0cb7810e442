/** A run of one role as a child process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { type ProcessIdentity, processIdentity } from '../lib/process/process-identity.ts'

export interface Role {
  name: string
  /** Arguments of Node: options, the program, its arguments. */
  argv: string[]
  /** The whole environment of the process. */
  env: NodeJS.ProcessEnv
}

/** The message of a role over its IPC channel once it can serve; with `url` if it has an address. */
export interface ReadyMessage {
  type: 'ready'
  url?: string
}

/** The message of a role while it stops: what it is currently waiting for. */
export interface WaitingMessage {
  type: 'waiting'
  what: string[]
}

/** How a run ended: its exit code, or the signal, and the last lines of its standard error. */
export interface RoleExit {
  code: number | null
  signal: NodeJS.Signals | null
  errors: string[]
}

export interface RoleProcess {
  /** Null if the process could not be started, or has already ended. */
  identity: Promise<ProcessIdentity | null>
  /** Resolves when the process has ended and its output has been read. */
  exit: Promise<RoleExit>
  /** Sends a signal; does nothing if the process has ended. */
  signal(name: NodeJS.Signals): void
}

const KEPT_ERRORS = 10
/** A grandchild may hold the pipes open after the role has ended. */
const OUTPUT_LIMIT_MS = 1000

/**
 * Starts a role, in its own session: Ctrl-C only reaches the supervisor, which stops the roles in order. The role
 * notices the supervisor's death as `disconnect` of the IPC channel.
 */
export function spawnRole(
  role: Role,
  onLine: (line: string) => void,
  onMessage: (message: ReadyMessage | WaitingMessage) => void,
): RoleProcess {
  const child = spawn(process.execPath, role.argv, {
    env: role.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const errors: string[] = []
  readLines(child.stdout, onLine)
  readLines(child.stderr, (line) => {
    errors.push(line)
    if (errors.length > KEPT_ERRORS) errors.shift()
    onLine(line)
  })
  child.on('message', (message) => {
    if (isMessage(message)) onMessage(message)
  })
  return {
    identity: identify(child),
    exit: waitForExit(child, errors),
    signal: (name) => void child.kill(name),
  }
}

async function identify(child: ChildProcess): Promise<ProcessIdentity | null> {
  if (child.pid === undefined) return null
  const identity = await processIdentity(child.pid)
  // The pid of an ended process may be reused: an identity read after the end may belong to another process.
  return child.exitCode === null && child.signalCode === null ? identity : null
}

function readLines(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): void {
  if (stream) createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', onLine)
}

function isMessage(message: unknown): message is ReadyMessage | WaitingMessage {
  if (typeof message !== 'object' || message === null || !('type' in message)) return false
  return message.type === 'ready' || message.type === 'waiting'
}

function waitForExit(child: ChildProcess, errors: string[]): Promise<RoleExit> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined) resolve({ code: null, signal: null, errors: [error.message] })
    })
    child.once('exit', (code, signal) => {
      const end = () => resolve({ code, signal, errors })
      child.once('close', end)
      setTimeout(end, OUTPUT_LIMIT_MS).unref()
    })
  })
}
