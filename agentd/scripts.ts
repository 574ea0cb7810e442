import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { SHELL } from './command.ts'
import { readLines } from './lines.ts'
import type { Log } from './logs.ts'
import { MANIFEST_BYTES, parseManifest } from './manifest-check.ts'
import { memoryKills, outOfMemory } from './memory.ts'
import { agentMark, PART } from './openclaw.ts'
import type { Paths } from './paths.ts'
import { readPlainFile } from './plain-file.ts'
import { endProcessTree, killProcessTree } from './processes.ts'
import type { ScriptStatus } from './protocol.ts'

const BUILD_MS = 300_000
/** The wait between SIGTERM and SIGKILL. */
const GRACE_MS = 3000
/** /tmp is memory, so a longer log starts over. */
const LOG_BYTES = 4_194_304

type Name = 'build' | 'start'

const IDLE: ScriptStatus = { state: 'not_configured', exitCode: null, startedAt: null, finishedAt: null }
const PENDING: ScriptStatus = { ...IDLE, state: 'pending' }
const FAILED: ScriptStatus = { ...IDLE, state: 'failed' }

interface Options {
  paths: Paths
  log: Log
  env(): Readonly<Record<string, string>>
  onChange(): void
  /** Kills a build that takes longer. */
  buildMs?: number
}

/** The agent's own `build` and `start`, from its manifest; their failure does not affect the agent. */
export class Scripts {
  readonly #options: Options
  #status: Record<Name, ScriptStatus> = { build: IDLE, start: IDLE }
  #round: { abort: AbortController; ended: Promise<void> } | undefined

  constructor(options: Options) {
    this.#options = options
  }

  get status(): Record<Name, ScriptStatus> {
    return this.#status
  }

  /**
   * Stops running scripts, then runs `build` and after its success `start`, or only `start`. Does not wait for them:
   * see {@link status}. A later call replaces this one.
   */
  run(first: Name): void {
    const previous = this.#round
    const abort = new AbortController()
    previous?.abort.abort()
    // Set now, and not only after reading the manifest, so that nobody mistakes it for an agent without scripts.
    if (first === 'build') this.#set('build', PENDING)
    this.#set('start', PENDING)
    const ended = (async () => {
      await previous?.ended
      if (!abort.signal.aborted) await this.#runRound(first, abort.signal)
    })().catch((error) => {
      this.#options.log.error(`the scripts could not be run: ${error.message}`)
      for (const name of ['build', 'start'] as const)
        if (this.#status[name].state === 'pending') this.#set(name, FAILED)
    })
    this.#round = { abort, ended }
  }

  /** Ends all scripts. Resolves when nothing of them is left. */
  async stop(): Promise<void> {
    const round = this.#round
    round?.abort.abort()
    await round?.ended
    await killProcessTree({ leader: null, marks: this.#marks() })
  }

  async #runRound(first: Name, signal: AbortSignal): Promise<void> {
    const { paths, log } = this.#options
    await killProcessTree({ leader: null, marks: this.#marks() })
    const { scripts, problem } = await readScripts(paths)
    if (problem) log.warn(`${problem}; no scripts are run`)
    this.#announce(first, scripts)
    if (
      first === 'build' &&
      scripts.build !== null &&
      !(await this.#runOne('build', scripts.build, signal))
    ) {
      // A failed build leaves nothing that `start` could rely on.
      if (scripts.start !== null && !signal.aborted) this.#set('start', FAILED)
      return
    }
    if (scripts.start === null) return
    if (signal.aborted) this.#set('start', FAILED)
    else await this.#runOne('start', scripts.start, signal)
  }

  #announce(first: Name, scripts: ManifestScripts): void {
    const status = (script: string | null) => (script === null ? IDLE : PENDING)
    if (first === 'build') this.#set('build', status(scripts.build))
    this.#set('start', status(scripts.start))
  }

  /** @returns whether it succeeded. */
  async #runOne(name: Name, script: string, signal: AbortSignal): Promise<boolean> {
    const { paths, log, env, buildMs = BUILD_MS } = this.#options
    const startedAt = new Date().toISOString()
    const output = new LogFile(join(paths.tmp, `user-${name}.log`), log)
    const kills = memoryKills()
    // Both streams share one pipe, so that their lines stay in order.
    const child = spawn(SHELL, ['-c', `exec 2>&1\n${script}`], {
      cwd: paths.root,
      env: { ...env(), [PART]: 'script' },
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#set(name, { state: 'running', exitCode: null, startedAt, finishedAt: null })
    readLines(child.stdout, (line) => {
      const message = log.redact(line)
      output.write(message)
      log.add({ level: 'INFO', source: `script/${name}`, message })
    })
    const limit = name === 'build' ? AbortSignal.timeout(buildMs) : undefined
    const exitCode = await this.#end(child, limit ? AbortSignal.any([signal, limit]) : signal)
    output.close()
    // An interrupted build has not failed: it waits for the gateway's next start.
    if (limit && signal.aborted) {
      this.#set(name, PENDING)
      return false
    }
    if (limit?.aborted) log.error(`build was ended: it took longer than ${buildMs / 1000} s`)
    const success = exitCode === 0
    const finishedAt = new Date().toISOString()
    const reason = success ? null : outOfMemory(`a process while the script ${name} ran`, kills)
    if (reason) log.add({ level: 'ERROR', source: `script/${name}`, message: reason })
    const state = success ? 'success' : 'failed'
    this.#set(name, { state, exitCode, startedAt, finishedAt, ...(reason && { reason }) })
    return success
  }

  /**
   * Waits for the script's end, or ends it when `signal` fires.
   * @returns its exit code, 128 + the signal's number if a signal ended it; null if it could not be started.
   */
  async #end(child: ChildProcess, signal: AbortSignal): Promise<number | null> {
    const over = new AbortController()
    const ended = new Promise<number | null>((resolve) => {
      child.once('error', () => resolve(null))
      child.once('exit', (code, name) => resolve(code ?? 128 + (name ? constants.signals[name] : 0)))
    }).finally(() => over.abort())
    const stop = AbortSignal.any([signal, over.signal])
    await new Promise<void>((resolve) => {
      if (stop.aborted) resolve()
      else stop.addEventListener('abort', () => resolve(), { once: true })
    })
    // A script may leave background processes when it ends by itself. A script that agentd ends is ended completely.
    const tree = { leader: child.pid ?? null, marks: this.#marks() }
    if (!over.signal.aborted) await endProcessTree(tree, { graceMs: GRACE_MS, asked: 'group' })
    return await Promise.race([
      ended,
      new Promise<null>((resolve) => setTimeout(resolve, 1000, null).unref()),
    ])
  }

  #marks(): string[] {
    return [agentMark(this.#options.paths), `${PART}=script`]
  }

  #set(name: Name, status: ScriptStatus): void {
    this.#status = { ...this.#status, [name]: status }
    this.#options.onChange()
  }
}

/** A script's output for its owner, recreated by each run. Scripts also run without it. */
class LogFile {
  #file: number | undefined
  #bytes = 0

  constructor(path: string, log: Log) {
    try {
      // The agent may have put a link or a FIFO there.
      rmSync(path, { force: true, recursive: true })
      this.#file = openSync(path, 'wx', 0o600)
    } catch (error) {
      log.warn(`there is no log file of the script: ${(error as Error).message}`)
    }
  }

  write(line: string): void {
    if (this.#file === undefined) return
    const text = Buffer.from(`${line}\n`)
    try {
      if (this.#bytes + text.length > LOG_BYTES) {
        ftruncateSync(this.#file, 0)
        this.#bytes = 0
      }
      writeSync(this.#file, text, 0, text.length, this.#bytes)
      this.#bytes += text.length
    } catch {
      // No space is left, but agentd's log also has the lines.
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}

/** The scripts that `manifest.json` in the agent's root names. */
interface ManifestScripts {
  build: string | null
  start: string | null
}

const NONE: ManifestScripts = { build: null, start: null }

/**
 * Reads the scripts of `clawd/manifest.json`, which the agent may have turned into anything.
 * @returns the scripts; and `problem`, the reason if none were found although there should be some.
 */
async function readScripts(paths: Paths): Promise<{ scripts: ManifestScripts; problem?: string }> {
  try {
    const text = await readPlainFile(join(paths.root, 'manifest.json'), MANIFEST_BYTES)
    if (text === undefined) return { scripts: NONE }
    const scripts = parseManifest(text)?.scripts
    return { scripts: { build: command(scripts?.build), start: command(scripts?.start) } }
  } catch (error) {
    const problem = error instanceof SyntaxError ? 'it is not valid JSON' : (error as Error).message
    return { scripts: NONE, problem: `manifest.json: ${problem}` }
  }
}

function command(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0') ? value : null
}
