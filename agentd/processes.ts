/** Finds, reads and ends processes, for agentd and for the process driver of Berth. */
import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isErrno } from './agentd-errors.ts'

/**
 * Processes that the kernel does not release (a hanging disk), or that fork faster than they are killed, must not block
 * anything.
 */
const KILL_MS = 5000
/** But at least this many rounds: a machine that stalls for a while is no reason to leave a process behind. */
const KILL_ROUNDS = 20
const POLL_MS = 25
const AT_ONCE = 16
/** USER_HZ, the unit of processor time in /proc; always 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100
/** The key of the page size in the kernel's auxiliary vector, getauxval(3). */
const AT_PAGESZ = 6n

/** A process group and the processes that left it, identified by their environment (`NAME=value`, all of `marks`). */
export interface ProcessTree {
  /** The group's leader; null to select only marked processes. */
  leader: number | null
  marks: string[]
}

/**
 * Sends SIGTERM, then after `graceMs` SIGKILL to everything left of the tree. Resolves when nothing is left.
 * @param options.asked who gets the SIGTERM: the `group`, or only its `leader`, if that ends its helpers itself and
 *   fails when they end first.
 */
export async function endProcessTree(
  tree: ProcessTree,
  { graceMs, asked }: { graceMs: number; asked: 'leader' | 'group' },
): Promise<void> {
  const { leader } = tree
  const target = leader !== null && asked === 'group' ? -leader : leader
  if (target !== null && sendSignal(target, 'SIGTERM')) {
    const deadline = performance.now() + graceMs
    while (performance.now() < deadline && sendSignal(target, 0)) await sleep(POLL_MS)
  }
  await killProcessTree(tree)
}

/**
 * Sends SIGKILL to the whole tree until nothing is left. Each round stops all processes first, so that none forks
 * between being found and being killed.
 */
export async function killProcessTree({ leader, marks }: ProcessTree): Promise<void> {
  const deadline = performance.now() + KILL_MS
  for (let round = 0; round < KILL_ROUNDS || performance.now() < deadline; round++) {
    if (leader !== null) sendSignal(-leader, 'SIGKILL')
    const found = await markedProcesses(marks)
    if (found.length === 0) return
    for (const pid of found) sendSignal(pid, 'SIGSTOP')
    for (const pid of found) sendSignal(pid, 'SIGKILL')
    await sleep(POLL_MS)
  }
}

/** Live processes with every mark in their environment; those of other users are invisible. */
export async function markedProcesses(marks: string[]): Promise<number[]> {
  const others = (await allProcesses().catch(() => [])).filter((pid) => pid !== process.pid)
  return readEach(others, async (pid) => {
    // Empty for a process that has ended and only waits for its parent.
    const environ = `\0${await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')}\0`
    return marks.every((mark) => environ.includes(`\0${mark}\0`)) ? pid : undefined
  })
}

/** The ids of all processes. */
export async function allProcesses(): Promise<number[]> {
  const names = await readdir('/proc')
  return names.filter((name) => /^\d+$/.test(name)).map(Number)
}

/** The kernel's data on a process. */
export interface ProcessEntry {
  pid: number
  /** True if it has ended, and only waits for its parent. */
  hasEnded: boolean
  parent: number
  session: number
  /** The process group in the foreground of its terminal; -1 without a terminal. */
  foreground: number
  /** Resident memory; shared pages count for each process. */
  memoryBytes: number
  /** Processor time used so far, including that of its ended children. */
  cpuSeconds: number
  threads: number
}

/** Reads these processes; leaves out those that are gone. */
export const readProcesses = (pids: number[]): Promise<ProcessEntry[]> => readEach(pids, readProcess)

async function readProcess(pid: number): Promise<ProcessEntry | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch((error) => {
    if (!isErrno(error, 'ENOENT', 'ESRCH')) throw error
  })
  if (stat === undefined) return undefined
  // proc(5), with that page's numbers of the fields; the second is the command in parentheses, which may contain
  // anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const field = (number: number) => Number(fields[number - 3])
  return {
    pid,
    hasEnded: fields[0] === 'Z' || fields[0] === 'X',
    parent: field(4),
    session: field(6),
    foreground: field(8),
    memoryBytes: field(24) * pageBytes(),
    cpuSeconds: (field(14) + field(15) + field(16) + field(17)) / TICKS_PER_SECOND,
    threads: field(20),
  }
}

let pageSize: number | undefined
function pageBytes(): number {
  if (pageSize !== undefined) return pageSize
  const pairs = readFileSync('/proc/self/auxv')
  for (let at = 0; at + 16 <= pairs.length; at += 16)
    if (pairs.readBigUInt64LE(at) === AT_PAGESZ) pageSize = Number(pairs.readBigUInt64LE(at + 8))
  pageSize ??= 4096
  return pageSize
}

/** Runs `read` for a few processes at a time: an environment may have megabytes. Leaves out undefined results. */
async function readEach<T>(pids: number[], read: (pid: number) => Promise<T | undefined>): Promise<T[]> {
  const found: T[] = []
  for (let at = 0; at < pids.length; at += AT_ONCE) {
    const some = await Promise.all(pids.slice(at, at + AT_ONCE).map(read))
    found.push(...some.filter((one) => one !== undefined))
  }
  return found
}

/** Sends a signal, to a group if the pid is negative. @returns whether it reached a process. */
export function sendSignal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
