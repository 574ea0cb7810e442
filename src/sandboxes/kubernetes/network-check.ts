/**
 * Checks that the cluster enforces network policies: in general, with a pod that must reach nothing, and for an agent's
 * pod.
 */
import type { V1Pod } from '@kubernetes/client-node'
import { SandboxError } from '../../errors.ts'
import { withDeadline } from '../../lib/signals.ts'
import { type Cluster, ignoring } from './cluster.ts'
import { execIn } from './exec.ts'
import { isEnded, openNetwork, runOf } from './found.ts'
import { GUARD, OPEN_NETWORK } from './guard.ts'
import { checkPolicyOf } from './objects.ts'
import { deletePod, readPod, waitForPod } from './pods.ts'

export const OPEN_NETWORK_ADVICE =
  'the network of the cluster does not enforce NetworkPolicy, so agents would reach whatever a pod reaches: install a network plugin that does, or accept that with BERTH_KUBERNETES_OPEN_NETWORK=true'

/** Includes the time to pull an image. */
const CHECK_MS = 5 * 60_000
/** Extra time for a command beyond its connection attempts. */
const MARGIN_MS = 30_000

/**
 * Runs the pod until it ends. Workers that start at the same time share it; a leftover pod is removed.
 * @throws SandboxError if it does not run, or ends with another exit code.
 */
export async function isNetworkShut(
  cluster: Cluster,
  pod: V1Pod,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { namespace } = cluster
  const name = pod.metadata?.name ?? ''
  const before = await readPod(cluster, name, signal)
  if (before && isEnded(before)) await deletePod(cluster, before, { graceSeconds: 0, signal })
  const made = await cluster.call('make the pod of the check', { signal }, ({ core }) =>
    core.createNamespacedPod({ namespace, body: pod }).catch(ignoring(409)),
  )
  const checking = made ?? (await readPod(cluster, name, signal))
  // The check of another worker ended between the two calls.
  if (!checking) return isNetworkShut(cluster, pod, signal)
  await cluster.call('make the policy of the check', { signal }, ({ networking }) =>
    networking
      .createNamespacedNetworkPolicy({ namespace, body: checkPolicyOf(checking) })
      .catch(ignoring(409)),
  )
  let last: V1Pod | undefined
  try {
    const bounds = { ms: CHECK_MS, signal }
    last = await waitForPod(cluster, name, bounds, (now) => now === undefined || isEnded(now))
  } finally {
    // Its policy is deleted along with it.
    await cluster.call('remove the check', {}, ({ core }) =>
      core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }).catch(ignoring(404)),
    )
  }
  // Somebody removed the pod before it ended, so it has proved nothing.
  if (!last || !isEnded(last)) return isNetworkShut(cluster, pod, signal)
  const { exitCode } = runOf(last)
  if (exitCode === 0 || exitCode === OPEN_NETWORK) return exitCode === 0
  throw new SandboxError('internal', `the network check ended with exit code ${exitCode}`)
}

/**
 * Tries connections from an agent's running pod, for at most `seconds`, with a command whose own connection goes
 * through the API server. The guard cannot tell a closed network from an API server that is down; while this connection
 * lives, the API server is up.
 * @returns why the pod must not be used; undefined if its network is closed.
 * @throws SandboxError `unreachable` if that cannot be determined now.
 */
export async function checkIsolation(
  cluster: Cluster,
  name: string,
  { seconds, signal }: { seconds: number; signal: AbortSignal | undefined },
): Promise<SandboxError | undefined> {
  const command = ['env', `GUARD_SECONDS=${seconds}`, 'GUARD_ROUNDS=1', 'node', '-e', GUARD]
  const late = () =>
    new SandboxError('unreachable', 'the node of the agent does not report whether its network is closed')
  let said = ''
  try {
    await withDeadline({ ms: seconds * 1000 + MARGIN_MS, signal, late }, async (either) => {
      const output = execIn(cluster, name, command, { signal: either, allowed: [OPEN_NETWORK] })
      for await (const part of output) said += part
    })
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'internal') return error
    throw error
  }
  return said.trim() === 'shut' ? undefined : openNetwork()
}
