/** Reads, waits for and deletes pods by name. */
import type { V1Pod } from '@kubernetes/client-node'
import { SandboxError } from '../../errors.ts'
import { withDeadline } from '../../lib/signals.ts'
import { type Bounds, type Cluster, ignoring } from './cluster.ts'
import { whatIsMissing } from './found.ts'
import { type Watched, watchObjects } from './watch.ts'

/** The watch and list of the pods that match a selector. */
export function watchedPods(
  namespace: string,
  selector: { labelSelector?: string; fieldSelector?: string },
): Watched<V1Pod> {
  return {
    path: `/api/v1/namespaces/${namespace}/pods`,
    ...selector,
    list: ({ core }) => core.listNamespacedPod({ namespace, ...selector }),
  }
}

export function readPod(
  cluster: Cluster,
  name: string,
  signal: AbortSignal | undefined,
): Promise<V1Pod | undefined> {
  const { namespace } = cluster
  return cluster.call('read pod', { signal }, ({ core }) =>
    core.readNamespacedPod({ namespace, name }).catch(ignoring(404)),
  )
}

/**
 * Resolves once `done` returns true for the pod, or for undefined while it does not exist. Returns the last known state
 * of the pod.
 * @throws SandboxError that says what the pod waits for, or the result of `late`, if it takes longer than `ms`; errors
 *   of `done`.
 */
export async function waitForPod(
  cluster: Cluster,
  name: string,
  { ms = 60_000, signal, late = whatIsMissing }: Bounds & { late?: (pod: V1Pod | undefined) => SandboxError },
  done: (pod: V1Pod | undefined) => boolean,
): Promise<V1Pod | undefined> {
  let last: V1Pod | undefined
  const watched = watchedPods(cluster.namespace, { fieldSelector: `metadata.name=${name}` })
  return withDeadline({ ms, signal, late: () => late(last) }, async (either) => {
    for await (const change of watchObjects(cluster, watched, either)) {
      const now = 'all' in change ? change.all[0] : change.type === 'DELETED' ? undefined : change.object
      // A deletion event contains the pod's last state, which shows how it ended.
      last = now ?? ('object' in change ? change.object : last)
      if (done(now)) return last
    }
    throw new SandboxError('internal', 'the watch ended')
  })
}

/** Ends a pod and waits until it is gone. @returns its last known state. @throws SandboxError */
export async function deletePod(
  cluster: Cluster,
  pod: V1Pod,
  { graceSeconds, signal }: { graceSeconds: number; signal: AbortSignal | undefined },
): Promise<V1Pod> {
  const { namespace } = cluster
  const { name = '', uid } = pod.metadata ?? {}
  const body = { gracePeriodSeconds: graceSeconds, preconditions: { ...(uid && { uid }) } }
  await cluster.call('delete pod', { signal }, ({ core }) =>
    // Another pod has the name by now, so this one is gone.
    core.deleteNamespacedPod({ namespace, name, body }).catch(ignoring(404, 409)),
  )
  const ms = (graceSeconds + GONE_SECONDS) * 1000
  const late = () =>
    new SandboxError(
      'unreachable',
      'the node of the agent does not confirm that the agent has ended: it may be lost',
    )
  const last = await waitForPod(cluster, name, { ms, signal, late }, (now) => now?.metadata?.uid !== uid)
  return last?.metadata?.uid === uid && last ? last : pod
}

/** How long a node may take to confirm that a pod has ended, in addition to its grace period. */
const GONE_SECONDS = 30
