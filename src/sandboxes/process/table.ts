/** The processes of this machine, and which of them belong to a sandbox. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  allProcesses,
  markedProcesses,
  type ProcessEntry,
  readProcesses,
  sendSignal,
} from '../../../agentd/processes.ts'
import { SandboxError } from '../../errors.ts'
import {
  isAlive,
  type ProcessIdentity,
  processIdentity,
  waitForEnd,
} from '../../lib/process/process-identity.ts'
import type { SandboxStats } from '../port.ts'

/** An environment variable of every process of a run, which identifies processes that left the session. */
export const MARKER = 'BERTH_SANDBOX'

/** A run of a sandbox: its id in {@link MARKER}, and its first process once known. */
export interface Run {
  id: string
  leader: ProcessIdentity | null
}

const KILL_LIMIT_MS = 10_000

/**
 * Ends a run: sends SIGTERM to its first process. After `graceMs`, or when that process has ended, kills everything
 * left of the run. It misses a process that left the session, was adopted and cleaned its environment: this does not
 * isolate.
 * @throws SandboxError `internal` if something survives SIGKILL, held by the kernel.
 */
export async function endRun(run: Run, graceMs: number): Promise<void> {
  if (run.leader && graceMs > 0 && (await isAlive(run.leader))) {
    sendSignal(run.leader.pid, 'SIGTERM')
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
    for (const { pid } of left) sendSignal(pid, 'SIGKILL')
    await sleep(20)
  }
}

/** Memory and processor time of all processes of a run. Shared memory counts for each process. */
export async function statsOf(run: Run): Promise<SandboxStats> {
  const members = await membersOf(run)
  const sum = (of: (entry: ProcessEntry) => number) => members.reduce((total, entry) => total + of(entry), 0)
  return {
    memoryBytes: sum((entry) => entry.memoryBytes),
    cpuSeconds: sum((entry) => entry.cpuSeconds),
    pids: sum((entry) => entry.threads),
  }
}

/** The processes of a run: its session, processes with its marker, and the children of both. */
async function membersOf(run: Run): Promise<ProcessEntry[]> {
  const table = (await readProcesses(await allProcesses())).filter(({ hasEnded }) => !hasEnded)
  const session = await sessionOf(run)
  const found = new Set(await markedProcesses([`${MARKER}=${run.id}`]))
  for (const entry of table) if (entry.session === session) found.add(entry.pid)
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const { pid, parent } of table) if (found.has(parent)) found.add(pid)
  }
  return table.filter((entry) => found.has(entry.pid) && entry.pid !== process.pid)
}

/**
 * The number of a run's session, which is its first process's pid, and is not reused while a member lives. Undefined if
 * another process has the pid by now.
 */
async function sessionOf({ leader }: Run): Promise<number | undefined> {
  const holder = leader && (await processIdentity(leader.pid))
  return leader && (!holder || holder.birth === leader.birth) ? leader.pid : undefined
}
