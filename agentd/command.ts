import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { AgentdError, isErrno } from './agentd-errors.ts'
import { memoryKills, outOfMemory } from './memory.ts'
import { killProcessTree, sendSignal } from './processes.ts'
import type { ExecResult } from './protocol.ts'

/** The shell for console commands and scripts. */
export const SHELL = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh'
/**
 * A variable in the environment of every process of a command, which identifies processes that left the process group.
 */
const MARKER = 'AGENTD_COMMAND'
/** How long to wait for output after the shell has exited: its background processes may hold the pipe. */
const DRAIN_MS = 200
/** A killed process that the kernel does not release (a hanging disk) must not delay the response. */
const KILL_MS = 2000

export interface CommandOptions {
  cwd: string
  env: Readonly<Record<string, string>>
  /** Its stdin; without it, there is none. */
  input?: string | undefined
  timeoutMs: number
  /** Maximum bytes of both streams together that are forwarded; the rest is read and dropped. */
  outputBytes: number
  /** Kills the command. */
  signal: AbortSignal
  /** Receives only whole characters. While the returned promise is pending, the command's output waits. */
  onText(stream: 'stdout' | 'stderr', text: string): Promise<void> | undefined
}

/**
 * Runs a shell command in its own process group. When its shell has exited, kills the rest of the group.
 * On timeout and abort also kills everything that it started in other groups; otherwise `setsid` lets a command leave
 * something running on purpose.
 * @returns how it ended; `exitCode` is 128 + the signal's number if a signal ended it. If it failed and the kernel
 *   killed a process for memory, `reason` and a last line of stderr say so.
 * @throws AgentdError bad_request for a command that is too long; busy if no process can be started.
 */
export async function runCommand(
  command: string,
  options: CommandOptions,
): Promise<Omit<ExecResult, 'stdout' | 'stderr'>> {
  const mark = `${MARKER}=${randomUUID()}`
  const kills = memoryKills()
  const child = await start(command, options, mark)
  const output = new BoundedOutput(options.outputBytes, options.onText)
  output.read('stdout', child.stdout)
  output.read('stderr', child.stderr)

  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const killed = Promise.withResolvers<void>()
  let timedOut = false
  const kill = () => {
    void killProcessTree({ leader: child.pid as number, marks: [mark] }).then(() =>
      later(KILL_MS, killed.resolve),
    )
  }
  const timer = setTimeout(() => {
    timedOut = true
    kill()
  }, options.timeoutMs)
  options.signal.addEventListener('abort', kill, { once: true })
  if (options.signal.aborted) kill()

  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => {
      resolve(code ?? 128 + constants.signals[signal as NodeJS.Signals])
    })
  })
  const exitCode = await Promise.race([exited, killed.promise.then(() => 128 + constants.signals.SIGKILL)])
  await Promise.race([drained(closed, output), killed.promise])
  clearTimeout(timer)
  options.signal.removeEventListener('abort', kill)
  sendSignal(-(child.pid as number), 'SIGKILL')
  child.stdin?.destroy()
  child.stdout.destroy()
  child.stderr.destroy()
  await output.end()
  const reason = exitCode === 0 ? null : outOfMemory('a process while this command ran', kills)
  // agentd adds this line, not the command: callers look for errors in stderr.
  if (reason) await options.onText('stderr', `${reason}\n`)
  return { exitCode, truncated: output.truncated, timedOut, ...(reason && { reason }) }
}

/** Resolves when all output was read, or the rest can only come from background processes. */
async function drained(closed: Promise<void>, output: BoundedOutput): Promise<void> {
  const all = closed.then(() => true)
  const late = () => new Promise<false>((resolve) => later(DRAIN_MS, () => resolve(false)))
  while (!(await Promise.race([all, late()])) && output.waiting !== undefined) await output.waiting
}

async function start(command: string, { cwd, env, input }: CommandOptions, mark: string) {
  try {
    const child = spawn(SHELL, ['-c', command], {
      cwd,
      env: { ...env, [MARKER]: mark.slice(MARKER.length + 1) },
      detached: true,
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    }) as ChildProcessByStdio<Writable | null, Readable, Readable>
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
    // It need not read its input.
    child.stdin?.on('error', () => {}).end(input)
    return child
  } catch (error) {
    if (isErrno(error, 'E2BIG')) throw new AgentdError('bad_request', 'command: too long', { cause: error })
    if (isErrno(error, 'EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE'))
      throw new AgentdError('busy', 'no process can be started', { cause: error })
    // The folder was removed or closed since the check: here spawn reports ENOENT only for that.
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES'))
      throw new AgentdError('bad_request', 'cwd: cannot be entered', { cause: error })
    throw error
  }
}

/** Forwards the first bytes of two streams as text, and drops the rest so that the command does not stall. */
class BoundedOutput {
  truncated = false
  #left: number
  readonly #onText: CommandOptions['onText']
  readonly #ends: (() => void)[] = []
  readonly #streams: Readable[] = []
  /** Pending while the reader of the output is slower than the command. */
  waiting: Promise<void> | undefined

  constructor(bytes: number, onText: CommandOptions['onText']) {
    this.#left = bytes
    this.#onText = onText
  }

  read(name: 'stdout' | 'stderr', stream: Readable): void {
    const decoder = new StringDecoder('utf8')
    let cut = false
    stream.on('data', (chunk: Buffer) => {
      if (chunk.length > this.#left) {
        cut = true
        this.truncated = true
      }
      if (this.#left > 0) this.#pass(name, decoder.write(chunk.subarray(0, this.#left)))
      this.#left -= Math.min(chunk.length, this.#left)
    })
    stream.on('error', () => {})
    // Half a character at the end is the command's own if nothing was cut off; otherwise the cut caused it.
    this.#ends.push(() => cut || this.#pass(name, decoder.end()))
    this.#streams.push(stream)
  }

  /** Forwards what was held back. */
  async end(): Promise<void> {
    for (const end of this.#ends) end()
    await this.waiting
  }

  #pass(name: 'stdout' | 'stderr', text: string): void {
    if (text === '') return
    const taken = this.#onText(name, text)
    if (!taken || this.waiting === taken) return
    for (const stream of this.#streams) stream.pause()
    this.waiting = taken
    taken.then(() => {
      if (this.waiting !== taken) return
      this.waiting = undefined
      for (const stream of this.#streams) stream.resume()
    })
  }
}

function later(ms: number, run: () => void): void {
  setTimeout(run, ms).unref()
}
