import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Processes that the kernel does not release (a hanging disk), or that fork faster than they are killed, must not block
 * anything.
 */
const KILL_MS = 5000
/** But at least this many rounds: a machine that stalls for a while is no reason to leave a process behind. */
const KILL_ROUNDS = 20
const POLL_MS = 25
const AT_ONCE = 16

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
  const names = await readdir('/proc').catch(() => [])
  const pids = names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const found: number[] = []
  const look = async (pid: string) => {
    // Empty for a process that has ended and only waits for its parent.
    const environ = `\0${await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')}\0`
    if (marks.every((mark) => environ.includes(`\0${mark}\0`))) found.push(Number(pid))
  }
  // A few at a time: an environment may have megabytes.
  while (pids.length > 0) await Promise.all(pids.splice(0, AT_ONCE).map(look))
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
