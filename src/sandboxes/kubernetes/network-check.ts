/** Checks that the network enforces policies: at all, by a pod that must reach nothing, and for the pod of an agent. */
import type { V1Pod } from '@kubernetes/client-node'
import { SandboxError } from '../port.ts'
import { type Cluster, ignoring } from './cluster.ts'
import { execIn } from './exec.ts'
import { isEnded, openNetwork, runOf } from './found.ts'
import { GUARD, OPEN_NETWORK } from './guard.ts'
import { checkPolicyOf } from './objects.ts'
import { deletePod, readPod, waitForPod } from './pods.ts'

export const OPEN_NETWORK_ADVICE =
  'the network of the cluster does not enforce NetworkPolicy, so agents would reach whatever a pod reaches: install a network plugin that does, or accept that by BERTH_KUBERNETES_OPEN_NETWORK=true'

/** With the time to pull an image. */
const CHECK_MS = 5 * 60_000
/** How much longer than its knocks a command may take. */
const MARGIN_MS = 30_000

/**
 * Runs the pod until it has ended. Workers that start side by side share it, and one that was left over is removed.
 * @throws SandboxError when it does not run, or ends in another way.
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
    // Its policy goes with it.
    await cluster.call('remove the check', {}, ({ core }) =>
      core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }).catch(ignoring(404)),
    )
  }
  // Somebody removed the pod before it had ended: it has shown nothing.
  if (!last || !isEnded(last)) return isNetworkShut(cluster, pod, signal)
  const { exitCode } = runOf(last)
  if (exitCode === 0 || exitCode === OPEN_NETWORK) return exitCode === 0
  throw new SandboxError('internal', `the check of the network ended with the exit code ${exitCode}`)
}

/**
 * Knocks from an agent's pod that runs, for `seconds` at most, by a command whose connection goes through the API server. The
 * guard cannot tell a shut network from an API server that is down; as long as this connection lives, that is up.
 * @returns why the pod must not be used; undefined where its network is shut.
 * @throws SandboxError `unreachable` where that cannot be found out now.
 */
export async function whyNotShut(
  cluster: Cluster,
  name: string,
  { seconds, signal }: { seconds: number; signal: AbortSignal | undefined },
): Promise<SandboxError | undefined> {
  const command = ['env', `GUARD_SECONDS=${seconds}`, 'GUARD_ROUNDS=1', 'node', '-e', GUARD]
  const bound = AbortSignal.timeout(seconds * 1000 + MARGIN_MS)
  const either = signal ? AbortSignal.any([signal, bound]) : bound
  let said = ''
  try {
    const output = execIn(cluster, name, command, { signal: either, allowed: [OPEN_NETWORK] })
    for await (const part of output) said += part
  } catch (error) {
    if (bound.aborted && !signal?.aborted)
      throw new SandboxError('unreachable', 'the node of the agent does not say whether its network is shut')
    if (error instanceof SandboxError && error.code === 'internal') return error
    throw error
  }
  return said.trim() === 'shut' ? undefined : openNetwork()
}
