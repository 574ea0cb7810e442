/** Checks that the network of a cluster enforces policies at all: once, by a pod that must reach nothing. */
import type { V1Pod } from '@kubernetes/client-node'
import { type Cluster, ignoring } from './cluster.ts'
import { isEnded, runOf } from './found.ts'
import { OPEN_NETWORK } from './guard.ts'
import { checkPolicyOf } from './objects.ts'
import { deletePod, readPod, waitForPod } from './pods.ts'

export const OPEN_NETWORK_ADVICE =
  'the network of the cluster does not enforce NetworkPolicy, so agents would reach whatever a pod reaches: install a network plugin that does, or accept that by BERTH_KUBERNETES_OPEN_NETWORK=true'

/** With the time to pull an image. */
const CHECK_MS = 5 * 60_000

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
  try {
    const ended = await waitForPod(
      cluster,
      name,
      { ms: CHECK_MS, signal },
      (now) => now === undefined || isEnded(now),
    )
    return !ended || runOf(ended).exitCode !== OPEN_NETWORK
  } finally {
    // Its policy goes with it.
    await cluster.call('remove the check', {}, ({ core }) =>
      core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }).catch(ignoring(404)),
    )
  }
}
