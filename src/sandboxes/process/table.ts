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

/** In the environment of every process of a run: it finds those that left the session. */
export const MARKER = 'BERTH_SANDBOX'

/** A run of a sandbox: its name in {@link MARKER}, and its first process once that is known. */
export interface Run {
  id: string
  leader: ProcessIdentity | null
}

interface Entry {
  pid: number
  parent: number
  /** Session; where there is no /proc, the process group. */
  session: number
  rssBytes: number
  cpuSeconds: number
  threads: number
}

/** USER_HZ, by which /proc counts processor time, is 100 on every Linux that Node runs on. */
const TICKS = 100
const KILL_LIMIT_MS = 10_000

/**
 * Ends a run: asks its first process by SIGTERM, and after `graceMs`, or when that has ended, kills whatever
 * is left of the run. A process that left the session, was adopted and cleaned its environment is not found: this is
 * no isolation.
 * @throws SandboxError `internal` when something survives SIGKILL (the kernel holds it).
 */
export async function endRun(run: Run, graceMs: number): Promise<void> {
  if (run.leader && graceMs > 0 && (await isAlive(run.leader))) {
    signal(run.leader.pid, 'SIGTERM')
    await waitForEnd(run.leader, graceMs)
  }
  const deadline = performance.now() + KILL_LIMIT_MS
  // Repeated until none is left: a process may have started others before it died.
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

/** Memory and processor time of all processes of a run. Memory that they share counts for each. */
export async function statsOf(run: Run): Promise<SandboxStats> {
  const members = await membersOf(run)
  const sum = (of: (entry: Entry) => number) => members.reduce((total, entry) => total + of(entry), 0)
  return {
    memoryBytes: sum((entry) => entry.rssBytes),
    cpuSeconds: sum((entry) => entry.cpuSeconds),
    pids: sum((entry) => entry.threads),
  }
}

/** The processes of a run: its session, those that carry its marker, and the children of both. */
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

/** The number of a session is its first process's, and not given out again while one of its members lives. */
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

/** True for a process that was started with the marker of a run. Linux only; elsewhere sessions and children must do. */
async function hasMarker(pid: number, id: string): Promise<boolean> {
  if (process.platform !== 'linux') return false
  try {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1')
    return `\0${environment}`.includes(`\0${MARKER}=${id}\0`)
  } catch {
    // The process has ended, or is another user's.
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
    // proc(5), by the numbers of the fields there; the second is the command in parentheses.
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

/** ps(1), as POSIX has it. */
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
