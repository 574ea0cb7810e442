import type { ContainerStats } from 'dockerode'
import type { SandboxStats } from '../port.ts'

/** The cgroup's numbers as Docker passes them on; zeros for a container that does not run. */
export function toStats(stats: ContainerStats): SandboxStats {
  const { usage = 0, stats: memory } = stats.memory_stats ?? {}
  // Files that the kernel keeps in memory only while nobody else wants it; cgroup version 1, then 2.
  const cache = memory?.total_inactive_file ?? memory?.inactive_file ?? 0
  return {
    memoryBytes: Math.max(usage - cache, 0),
    cpuSeconds: (stats.cpu_stats?.cpu_usage?.total_usage ?? 0) / 1e9,
    pids: stats.pids_stats?.current ?? 0,
  }
}
