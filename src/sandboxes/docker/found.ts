/** Reads what the engine reports about a container. */
import type { ContainerInspectInfo, ContainerStats } from 'dockerode'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { AGENT_LABEL, VERSION_LABEL } from '../names.ts'
import type { Sandbox, SandboxStats } from '../port.ts'

/** The exit code after SIGKILL. */
const KILLED = 137
/** The engine's notation for "never". */
const NEVER = '0001-01-01T00:00:00Z'

export const hasLabels = ({ Config }: ContainerInspectInfo, labels: Record<string, string>) =>
  Object.entries(labels).every(([name, value]) => Config.Labels[name] === value)

/** True for a usable container. A container that Docker failed to remove (`Dead`) is not usable. */
export const isWhole = (found: ContainerInspectInfo) => !found.State.Dead

export const endpointOf = ({ Name, NetworkSettings }: ContainerInspectInfo) =>
  NetworkSettings.Networks[Name.replace(/^\//, '')]

/** The agent's own address, assigned when its container is created. */
export const addressOf = (found: ContainerInspectInfo): string | undefined =>
  endpointOf(found)?.IPAMConfig?.IPv4Address

/** Why the container cannot be reached although a recreated one could; undefined if it can. */
export function faultOf(found: ContainerInspectInfo): string | undefined {
  if (found.State.Paused) return 'its container is paused'
  return addressOf(found) ? undefined : 'its container is not connected to its network'
}

export function toSandbox(found: ContainerInspectInfo): Sandbox {
  const { Status, ExitCode, OOMKilled, StartedAt } = found.State
  const { [AGENT_LABEL]: agentId = '', [VERSION_LABEL]: engineVersion = '' } = found.Config.Labels
  const state = Status === 'created' ? 'created' : /^(exited|dead)$/.test(Status) ? 'exited' : 'running'
  const address = addressOf(found)
  const fault = faultOf(found)
  return {
    agentId,
    state,
    engineVersion,
    address: state === 'running' && address ? `${address}:${AGENTD_PORT}` : null,
    exitCode: state === 'exited' ? ExitCode : null,
    // Docker also sets OOMKilled if the kernel killed only a command and the container ended later.
    oomKilled: state === 'exited' && OOMKilled && ExitCode === KILLED,
    ...(fault && { fault }),
    startedAt: StartedAt === NEVER ? null : StartedAt,
  }
}

/** The cgroup's numbers as Docker reports them; zeros for a stopped container. */
export function toStats(stats: ContainerStats): SandboxStats {
  const { usage = 0, stats: memory } = stats.memory_stats ?? {}
  // The file cache, which the kernel frees when memory is needed; cgroup version 1, then 2.
  const cache = memory?.total_inactive_file ?? memory?.inactive_file ?? 0
  return {
    memoryBytes: Math.max(usage - cache, 0),
    cpuSeconds: (stats.cpu_stats?.cpu_usage?.total_usage ?? 0) / 1e9,
    pids: stats.pids_stats?.current ?? 0,
  }
}
