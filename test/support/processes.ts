/** Child processes of tests: started, watched and ended by pid. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../src/standalone/postgres-server.ts'

/** A free port on loopback, outside of the range that outgoing connections take theirs from. */
export { freePort } from '../../src/standalone/postgres-server.ts'

/** The first of three free ports in a row: the roles of `npm start` take such for their metrics. */
export async function freeMetricsPorts(): Promise<number> {
  for (;;) {
    const first = await freePort()
    if ((await Promise.all([first + 1, first + 2].map(isFree))).every(Boolean)) return first
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Between two looks of {@link until}: a tenth of the time that it has waited, since each costs processor time. */
const LOOK_MS = { least: 25, most: 250 }

/** Polls until `check` gives something else than undefined or false. @throws when `ms` pass first. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  ms = 60_000,
): Promise<T> {
  const began = performance.now()
  let last: unknown
  for (let waited = 0; waited < ms; waited = performance.now() - began) {
    try {
      const result = await check()
      if (result !== undefined && result !== false) return result as T
    } catch (error) {
      last = error
    }
    await delay(Math.min(Math.max(waited / 10, LOOK_MS.least), LOOK_MS.most))
  }
  throw new Error(`not within ${ms} ms: ${what}`, { cause: last })
}

/** Waits until a number is the same as it was 200 ms before, and resolves to it. */
export async function untilStill(what: string, read: () => number): Promise<number> {
  let before = read()
  await until(`${what} changes no more`, async () => {
    await delay(200)
    const now = read()
    const isStill = now === before
    before = now
    return isStill
  })
  return before
}

export interface Running {
  readonly process: ChildProcess
  /** What it wrote so far on both outputs. */
  output(): string
  /** Ends it by `signal` and waits; by SIGKILL when it takes longer than 20 s. */
  end(signal?: NodeJS.Signals): Promise<void>
}

/** Starts a program whose output is kept. With `group`, it leads a process group, and `end` signals all of it. */
export function run(
  command: string,
  args: string[],
  options: {
    env?: NodeJS.ProcessEnv
    cwd?: string
    uid?: number | undefined
    gid?: number | undefined
    group?: boolean
  } = {},
): Running {
  const { group = false, ...rest } = options
  const child = spawn(command, args, { ...rest, detached: group, stdio: ['ignore', 'pipe', 'pipe'] })
  const chunks: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(String(chunk)))
  child.on('error', (error) => chunks.push(String(error)))
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const signalIt = (signal: NodeJS.Signals) => {
    if (!child.pid || child.exitCode !== null || child.signalCode !== null) return
    try {
      process.kill(group ? -child.pid : child.pid, signal)
    } catch {
      // It ended in between.
    }
  }
  return {
    process: child,
    output: () => chunks.join(''),
    async end(signal = 'SIGTERM') {
      signalIt(signal)
      const timer = setTimeout(() => signalIt('SIGKILL'), 20_000)
      await ended
      clearTimeout(timer)
    },
  }
}
