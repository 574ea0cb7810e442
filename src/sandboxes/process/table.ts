/** The processes of this machine, and which of them belong to a sandbox. */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { hasCode } from '../../lib/files.ts'
import {
  isAlive,
  type ProcessIdentity,
  processIdentity,
  waitForEnd,
} from '../../lib/process/process-identity.ts'
import { SandboxError, type SandboxStats } from '../port.ts'

const execute = promisify(execFile)

/** An environment variable of every process of a run, which identifies processes that left the session. */
export const MARKER = 'BERTH_SANDBOX'

/** A run of a sandbox: its id in {@link MARKER}, and its first process once known. */
export interface Run {
  id: string
  leader: ProcessIdentity | null
}

interface Entry {
  pid: number
  parent: number
  /** Session; the process group if there is no /proc. */
  session: number
  rssBytes: number
  cpuSeconds: number
  threads: number
}

/** USER_HZ, the unit of processor time in /proc; always 100 on every Linux that Node supports. */
const TICKS = 100
const KILL_LIMIT_MS = 10_000

/**
 * Ends a run: sends SIGTERM to its first process. After `graceMs`, or when that process has ended, kills everything
 * left of the run. It misses a process that left the session, was adopted and cleaned its environment: this does not
 * isolate.
 * @throws SandboxError `internal` if something survives SIGKILL, held by the kernel.
 */
export async function endRun(run: Run, graceMs: number): Promise<void> {
  if (run.leader && graceMs > 0 && (await isAlive(run.leader))) {
    signal(run.leader.pid, 'SIGTERM')
    await waitForEnd(run.leader, graceMs)
  }
  const deadline = performance.now() + KILL_LIMIT_MS
  // Repeats until nothing is left: a process may have started others before it died.
  for (;;) {
    const left = await membersOf(run)
    if (left.length === 0) return
    if (performance.now() > deadline) {
      const pids = left.map((entry) => entry.pid).join(', ')
      throw new SandboxError('internal', `processes ${pids} do not end`)
    }
    for (const { pid } of left) signal(pid, 'SIGKILL')
    await sleep(20)
  }
}

/** Memory and processor time of all processes of a run. Shared memory counts for each process. */
export async function statsOf(run: Run): Promise<SandboxStats> {
  const members = await membersOf(run)
  const sum = (of: (entry: Entry) => number) => members.reduce((total, entry) => total + of(entry), 0)
  return {
    memoryBytes: sum((entry) => entry.rssBytes),
    cpuSeconds: sum((entry) => entry.cpuSeconds),
    pids: sum((entry) => entry.threads),
  }
}

/** The processes of a run: its session, processes with its marker, and the children of both. */
async function membersOf(run: Run): Promise<Entry[]> {
  const table = await readTable()
  const inSession = await sessionTest(run)
  const found = new Set<number>()
  for (const entry of table) {
    if (inSession(entry) || (await hasMarker(entry.pid, run.id))) found.add(entry.pid)
  }
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const { pid, parent } of table) if (found.has(parent)) found.add(pid)
  }
  return table.filter((entry) => found.has(entry.pid) && entry.pid !== process.pid)
}

/** A session's number is its first process's pid, and is not reused while a member lives. */
async function sessionTest({ leader }: Run): Promise<(entry: Entry) => boolean> {
  if (!leader) return () => false
  const holder = await processIdentity(leader.pid)
  if (holder && holder.birth !== leader.birth) return () => false
  return (entry) => entry.session === leader.pid
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error
  }
}

/**
 * True for a process that was started with the marker of a run. Linux only; other systems rely on sessions and
 * children.
 */
async function hasMarker(pid: number, id: string): Promise<boolean> {
  if (process.platform !== 'linux') return false
  try {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1')
    return `\0${environment}`.includes(`\0${MARKER}=${id}\0`)
  } catch {
    // The process has ended, or belongs to another user.
    return false
  }
}

/** Every process that has not ended. */
async function readTable(): Promise<Entry[]> {
  if (process.platform !== 'linux') return readPs()
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const entries = await Promise.all(names.map((name) => readEntry(Number(name))))
  return entries.filter((entry) => entry !== null)
}

async function readEntry(pid: number): Promise<Entry | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1')
    // proc(5), with that page's field numbers; the second field is the command in parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const field = (number: number) => Number(fields[number - 3])
    if (fields[0] === 'Z' || fields[0] === 'X') return null
    const ticks = field(14) + field(15) + field(16) + field(17)
    return {
      pid,
      parent: field(4),
      session: field(6),
      rssBytes: field(24) * (await pageBytes()),
      cpuSeconds: ticks / TICKS,
      threads: field(20),
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return null
    throw error
  }
}

let pageSize: Promise<number> | undefined
const pageBytes = () => {
  pageSize ??= execute('getconf', ['PAGESIZE'], { timeout: 5000 }).then(({ stdout }) => Number(stdout))
  return pageSize
}

/** ps(1), as specified by POSIX. */
async function readPs(): Promise<Entry[]> {
  const { stdout } = await execute('ps', ['-A', '-o', 'pid=,ppid=,pgid=,rss=,time='], {
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    timeout: 5000,
    maxBuffer: 16 * 1024 * 1024,
  })
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns.length === 5)
    .map(([pid, parent, group, kib, time]) => ({
      pid: Number(pid),
      parent: Number(parent),
      session: Number(group),
      rssBytes: Number(kib) * 1024,
      cpuSeconds: seconds(String(time)),
      threads: 1,
    }))
}

/** `[[days-]hours:]minutes:seconds` */
function seconds(time: string): number {
  const [days, clock] = time.includes('-') ? time.split('-') : ['0', time]
  return (clock ?? '').split(':').reduce((sum, part) => sum * 60 + Number(part), 0) + Number(days) * 86_400
}
