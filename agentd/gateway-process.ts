/** One run of the gateway's process, from its start until nothing of it is left. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { readLines } from './lines.ts'
import type { Log } from './logs.ts'
import { memoryKills, outOfMemory } from './memory.ts'
import { agentMark, failureReason, gatewayCommand, PART, parseLogLine, probe } from './openclaw.ts'
import type { Paths } from './paths.ts'
import { endProcessTree, killProcessTree, type ProcessTree } from './processes.ts'
import type { AgentdConfig, LogLine } from './protocol.ts'
import { SPARE } from './spare.ts'

/** The engine itself may take 5.5 minutes to end; its state survives SIGKILL. */
const STOP_MS = 8000
const POLL_MS = { starting: 100, ready: 1000 }
/**
 * How many times in a row a ready gateway may fail to respond in time before it counts as not ready: after hanging for
 * 14 s. On a busy machine a working gateway may stall for ten.
 */
const STALLS = 5
const LAST_LINES = 20
/** A process that the kernel kills for memory has ended within this time, even a large one. */
const KILL_MS = 3000

export interface GatewayRunOptions {
  config: AgentdConfig
  paths: Paths
  log: Log
  env: Record<string, string>
  /** Starts a gateway whose environment can be replaced, see `spare.ts`. */
  spare: boolean
  /** Time limit from `since` (of `performance.now`) until the gateway is ready; a run that takes longer is ended. */
  readyMs: number
  since: number
  /** Ends the gateway: SIGTERM, 8 s, SIGKILL. */
  signal: AbortSignal
  onStart(child: ChildProcess): void
  /** Called with each change, and with false at first. */
  onReady(ready: boolean): void
}

/** How a gateway ended. */
export interface GatewayExit {
  exitCode: number | null
  signal: NodeJS.Signals | null
  /** True if the gateway was not ready in time. */
  late: boolean
  /** True if the kernel killed it for memory. */
  outOfMemory: boolean
  /** Why it ended, in one line; the engine's own reason if it gives one. */
  reason: string
  /** Its last lines of output, at most 20. */
  lastLines: string[]
}

/** The gateway's processes: `leader` with its group, and helpers in groups of their own. */
export function gatewayTree(paths: Paths, leader: number | null): ProcessTree {
  return { leader, marks: [agentMark(paths), `${PART}=gateway`] }
}

/** The environment that marks a {@link gatewayTree}. */
export function gatewayEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return { ...env, [PART]: 'gateway' }
}

/** Runs the gateway until it ends or is ended. @throws if its command line is too long. */
export async function runGatewayOnce(options: GatewayRunOptions): Promise<GatewayExit> {
  const { config, paths, log } = options
  const { file, args } = gatewayCommand(config)
  const spare = options.spare ? SPARE : undefined
  const child = spawn(file, [...(spare?.args ?? []), ...args], {
    cwd: paths.root,
    env: { ...gatewayEnvironment(options.env), ...spare?.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', ...(spare?.stdio ?? [])],
  })
  const lines: LogLine[] = []
  for (const stream of ['stdout', 'stderr'] as const)
    readLines(child[stream] as Readable, (text) => {
      const line = parseLogLine(text, stream)
      log.add(line)
      lines.push({ ...line, message: log.redact(line.message).slice(0, 2000) })
      if (lines.length > LAST_LINES) lines.shift()
    })
  const over = new AbortController()
  const ended = endOf(child).finally(() => over.abort())
  const tree = gatewayTree(paths, child.pid ?? null)
  if (child.pid !== undefined) options.onStart(child)
  const kills = new RecentKills()
  const late = await watch(options, AbortSignal.any([over.signal, options.signal]), () => kills.note())
  if (over.signal.aborted) await killProcessTree(tree)
  else await endProcessTree(tree, { graceMs: STOP_MS, asked: 'leader' })
  // A process that not even SIGKILL ends (the kernel holds it) must not block agentd as well.
  const end = await Promise.race([ended, sleep(1000, UNKNOWN_END)])
  const killed = end.signal === 'SIGKILL' && !late ? outOfMemory('the gateway', kills.before) : null
  const reason = late
    ? `the gateway is not ready after ${Math.round(options.readyMs / 1000)} s`
    : (killed ?? reasonOf(end, lines, options))
  const lastLines = lines.map(({ level, source, message }) => `${level} ${source}: ${message}`)
  return { exitCode: end.code, signal: end.signal, late, outOfMemory: killed !== null, reason, lastLines }
}

/**
 * Follows the gateway's readiness until `stop` fires.
 * @returns true if it was not ready for too long before that.
 */
async function watch(
  { config, readyMs, since, onReady }: GatewayRunOptions,
  stop: AbortSignal,
  onLook: () => void,
): Promise<boolean> {
  let ready = false
  let lastReady = since
  let stalls = 0
  const become = (now: boolean) => {
    if (now !== ready) onReady(now)
    ready = now
  }
  while (!stop.aborted) {
    const answer = await probe(config.gatewayPort)
    if (stop.aborted) return false
    onLook()
    stalls = answer === 'stalled' ? stalls + 1 : 0
    if (answer === 'ready') {
      lastReady = performance.now()
      become(true)
    } else if (!ready || stalls === 0 || stalls >= STALLS) {
      // Until then it is only busy, and clients should still talk to it.
      become(false)
      if (performance.now() - lastReady > readyMs) return true
    }
    await sleep(ready ? POLL_MS.ready : POLL_MS.starting, undefined, { signal: stop }).catch(() => {})
  }
  return false
}

/** The recent number of kills: a gateway runs for long, and earlier kills concern other processes. */
class RecentKills {
  #at = performance.now()
  #last = memoryKills()
  before = this.#last

  note(): void {
    if (performance.now() - this.#at < KILL_MS) return
    this.before = this.#last
    this.#last = memoryKills()
    this.#at = performance.now()
  }
}

interface End {
  code: number | null
  signal: NodeJS.Signals | null
  /** Why the process could not be started. */
  error?: Error
}

const UNKNOWN_END: End = { code: null, signal: null }

/** Resolves when the process has ended and its output was read, or could not be started. */
function endOf(child: ChildProcess): Promise<End> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      child.once('close', () => resolve({ code, signal }))
      // The gateway's helpers may hold its output open; they are about to be killed.
      setTimeout(() => resolve({ code, signal }), 200)
    })
    child.once('error', (error) => resolve({ ...UNKNOWN_END, error }))
  })
}

function reasonOf(
  { code, signal, error }: End,
  lines: LogLine[],
  { paths, config }: GatewayRunOptions,
): string {
  if (error) return `the engine cannot be started: ${error.message}`
  if (signal) return `the gateway was ended by ${signal}`
  if (code === null) return 'the gateway does not end'
  // The engine's last lines are the reason only if it ended by itself.
  return (
    failureReason(lines, { paths, engineDir: config.engineDir }) ??
    `the gateway has ended with exit code ${code}`
  )
}
