/** The usage of a pod, from its cgroup files: the API server knows neither processor time nor processes. */
import type { SandboxStats } from '../port.ts'

/** Prints `name value` lines from the files of cgroup version 2 or 1. */
export const STATS = [
  'sh',
  '-c',
  `cd /sys/fs/cgroup
if [ -e memory.current ]; then
  echo usage $(cat memory.current); sed -n 's/^inactive_file /cache /p' memory.stat
  sed -n 's/^usage_usec /usec /p' cpu.stat; echo pids $(cat pids.current)
else
  echo usage $(cat memory/memory.usage_in_bytes); sed -n 's/^total_inactive_file /cache /p' memory/memory.stat
  echo nsec $(cat cpuacct/cpuacct.usage); echo pids $(cat pids/pids.current)
fi`,
]

/** @returns zeros for missing values: an agent may print anything. */
export function parseStats(text: string): SandboxStats {
  const values = new Map(
    text.split('\n').map((line) => {
      const [name = '', value] = line.split(' ')
      return [name, Number(value) || 0]
    }),
  )
  const of = (name: string) => values.get(name) ?? 0
  return {
    memoryBytes: Math.max(of('usage') - of('cache'), 0),
    cpuSeconds: of('usec') / 1e6 + of('nsec') / 1e9,
    pids: of('pids'),
  }
}
