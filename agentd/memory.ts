/**
 * Finds out whether a process was killed for memory, which the kernel does not report. But it counts such kills: for a
 * container in its cgroup, and for the whole machine in /proc/vmstat, because process agents have no cgroup of their
 * own.
 */
import { readFileSync } from 'node:fs'

/** The files of a container's own cgroup, of version 2 and of version 1. */
const CONTAINER = ['/sys/fs/cgroup/memory.events', '/sys/fs/cgroup/memory/memory.oom_control']
const MACHINE = ['/proc/vmstat']
/** Set by the process driver, with the sandbox's name. */
const isProcess = process.env.BERTH_SANDBOX !== undefined

/** How many processes the kernel has killed for memory so far; 0 if it does not count them. */
export function memoryKills(files = isProcess ? MACHINE : CONTAINER): number {
  for (const file of files) {
    try {
      const [, count] = /^oom_kill (\d+)$/m.exec(readFileSync(file, 'latin1')) ?? []
      if (count !== undefined) return Number(count)
    } catch {
      // The other version's file, or none at all: gVisor has neither.
    }
  }
  return 0
}

/** The container's limit in bytes; null for a process agent, which has no limit of its own. */
export function memoryLimit(): number | null {
  const bytes = isProcess ? 0 : process.constrainedMemory()
  return bytes > 0 && bytes < Number.MAX_SAFE_INTEGER ? bytes : null
}

/**
 * The message if the kernel killed `what` for memory.
 * @param before {@link memoryKills} while it still ran.
 * @returns null if the kernel has killed nothing since.
 */
export function outOfMemory(
  what: string,
  before: number,
  kills = memoryKills(),
  limit = memoryLimit(),
): string | null {
  if (kills <= before) return null
  const room =
    limit === null
      ? 'the machine has no memory left'
      : `the agent's limit is ${Math.round(limit / 1_048_576)} MiB`
  return `out of memory: the kernel killed ${what}, ${room}`
}
