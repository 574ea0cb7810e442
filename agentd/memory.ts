/**
 * Why a process was killed: the kernel tells nobody that it did so for memory. But it counts such kills, for a container in
 * its cgroup, and for the whole machine in /proc/vmstat, where agents as processes have no cgroup of their own.
 */
import { readFileSync } from 'node:fs'

/** The files of a container's own cgroup, of version 2 and of version 1. */
const CONTAINER = ['/sys/fs/cgroup/memory.events', '/sys/fs/cgroup/memory/memory.oom_control']
const MACHINE = ['/proc/vmstat']
/** The sandbox that the process driver names. */
const isProcess = process.env.BERTH_SANDBOX !== undefined

/** How many processes the kernel has killed for memory so far; 0 if it does not say. */
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

/** The container's limit in bytes; null for an agent as a process, which has none of its own. */
export function memoryLimit(): number | null {
  const bytes = isProcess ? 0 : process.constrainedMemory()
  return bytes > 0 && bytes < Number.MAX_SAFE_INTEGER ? bytes : null
}

/**
 * Says that the kernel killed `what` for memory.
 * @param before {@link memoryKills} while it still ran.
 * @returns null if the kernel has killed nobody since.
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
