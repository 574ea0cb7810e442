import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** Processes that the kernel does not let go (a disk that hangs), or that fork faster than we kill, hold nobody up. */
const KILL_MS = 5000
/** But so many rounds in any case: a machine that stands still for a while is no reason to leave somebody behind. */
const KILL_ROUNDS = 20
const POLL_MS = 25
const AT_ONCE = 16

/** A process group and whoever left it, known by what is in their environment (`NAME=value`, every one of `marks`). */
export interface ProcessTree {
  /** The group's leader; null when only the marked ones are meant. */
  leader: number | null
  marks: string[]
}

/**
 * SIGTERM, then after `graceMs` SIGKILL to all that is left of the tree. Resolves when nobody is.
 * @param options.asked who gets the SIGTERM: the `group`, or its `leader` alone, where that ends its helpers itself and
 *   takes it ill when they go before.
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
 * SIGKILL to the whole tree, again until nobody is left. Each round stops them all first, so that nobody forks
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

/** The processes that live and have every mark in their environment; those of other users cannot be seen. */
export async function markedProcesses(marks: string[]): Promise<number[]> {
  const names = await readdir('/proc').catch(() => [])
  const pids = names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const found: number[] = []
  const look = async (pid: string) => {
    // Empty for one that has ended and only waits for its parent.
    const environ = `\0${await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')}\0`
    if (marks.every((mark) => environ.includes(`\0${mark}\0`))) found.push(Number(pid))
  }
  // A few at a time: an environment may have megabytes.
  while (pids.length > 0) await Promise.all(pids.splice(0, AT_ONCE).map(look))
  return found
}

/** Sends a signal, to a group where the pid is negative. @returns whether there was anybody. */
export function sendSignal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
