/** Child processes of tests: started, watched and ended by pid. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isFree } from '../../src/lib/net/bind.ts'

/** The only port of the range that `fetch` refuses ("bad port", WHATWG Fetch 2.9). */
const REFUSED_BY_FETCH = 10_080

/** A file for each port that a test process has, with its pid. */
const PORTS_DIR = join(tmpdir(), `berth-test-ports-${userInfo().uid}`)

/**
 * A free port on loopback, in a range that neither Berth nor outgoing connections use. No other test process gets it
 * while this process lives, because a killed server is restarted on its port.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const port = 10_000 + Math.floor(Math.random() * 10_000)
    if (port !== REFUSED_BY_FETCH && (await isFree(port)) && reserve(port)) return port
  }
  throw new Error('there is no free port between 10000 and 19999 on 127.0.0.1')
}

/** The first of three free consecutive ports: the roles of `npm start` use such ports for their metrics. */
export async function freeMetricsPorts(): Promise<number> {
  for (;;) {
    const first = await freePort()
    const others = [first + 1, first + 2]
    if ((await Promise.all(others.map(isFree))).every(Boolean) && others.every(reserve)) return first
  }
}

/** Claims the port for this process. @returns false if a living test process has it. */
function reserve(port: number): boolean {
  mkdirSync(PORTS_DIR, { recursive: true })
  const path = join(PORTS_DIR, `${port}`)
  for (;;) {
    try {
      writeFileSync(path, `${process.pid}`, { flag: 'wx' })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (!isLeftOver(path)) return false
      rmSync(path, { force: true })
    }
  }
}

/** True for a file whose process has ended. */
function isLeftOver(path: string): boolean {
  try {
    process.kill(Number(readFileSync(path, 'utf8')), 0)
    return false
  } catch (error) {
    return ['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

/**
 * The pause between two checks of {@link until}: a tenth of the time that it has waited, because each check costs
 * processor time.
 */
const POLL_MS = { least: 25, most: 250 }

/** Polls until `check` returns something other than undefined or false. @throws if `ms` pass first. */
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
    await delay(Math.min(Math.max(waited / 10, POLL_MS.least), POLL_MS.most))
  }
  throw new Error(`not within ${ms} ms: ${what}`, { cause: last })
}

/**
 * Pauses a process (SIGSTOP), and waits until all of its threads have stopped, because the signal reaches them later.
 */
export async function holdUp(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  const threads = `/proc/${pid}/task`
  await until('it stands still', () =>
    readdirSync(threads).every((id) => /\) [Tt] /.test(readFileSync(`${threads}/${id}/stat`, 'utf8'))),
  )
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
  /** Everything that the process has written so far, on both outputs. */
  output(): string
  /** Ends it by `signal` and waits; uses SIGKILL if it takes longer than 20 s. */
  end(signal?: NodeJS.Signals): Promise<void>
  /** Sends a signal, if it has not ended. */
  signal(signal: NodeJS.Signals): void
}

/** Starts a program and keeps its output. With `group`, it leads a process group, and `end` signals all of it. */
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
      // The process ended in between.
    }
  }
  return {
    process: child,
    output: () => chunks.join(''),
    signal: signalIt,
    async end(signal = 'SIGTERM') {
      signalIt(signal)
      const timer = setTimeout(() => signalIt('SIGKILL'), 20_000)
      await ended
      clearTimeout(timer)
    },
  }
}
