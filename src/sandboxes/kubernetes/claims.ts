/** Volume claims for agents' homes. */
import type { V1PersistentVolumeClaim } from '@kubernetes/client-node'
import { within } from '../../lib/signals.ts'
import { AGENT_LABEL, belongsToOthers, INSTANCE_LABEL, isLabelled, nameOf, ownOf } from '../names.ts'
import type { Owner } from '../owner.ts'
import { type Cluster, ignoring } from './cluster.ts'
import { removeHelper } from './home.ts'
import { claimOf } from './objects.ts'
import { type Watched, watchObjects } from './watch.ts'

export interface ClaimParts {
  cluster: Cluster
  owner: Owner
  storageClass?: string | undefined
  signal: AbortSignal | undefined
}

/** The claim's size if a home is restored before its agent is known. */
const DEFAULT_BYTES = 10 * 1024 ** 3
/** A pod's volume stays in use for a while after the pod has ended. */
const GONE_MS = 60_000

/** Creates the agent's claim if it does not exist; an existing claim keeps its size. @throws SandboxError */
export async function ensureClaim(
  { cluster, owner, storageClass, signal }: ClaimParts,
  agentId: string,
  diskBytes = DEFAULT_BYTES,
): Promise<void> {
  const { namespace } = cluster
  const body = claimOf(agentId, owner.instance, { bytes: diskBytes, storageClass })
  for (;;) {
    const made = await cluster.call('make claim', { signal }, ({ core }) =>
      core.createNamespacedPersistentVolumeClaim({ namespace, body }).catch(ignoring(409)),
    )
    if (made) return
    const found = await readClaim(cluster, agentId, signal)
    if (!found) continue
    if (!isLabelled(owner, found.metadata?.labels))
      throw belongsToOthers('claim', nameOf(agentId), found.metadata?.labels)
    if (!found.metadata?.deletionTimestamp) return
    await waitUntilGone(cluster, agentId, signal)
  }
}

/** Removes the agent's claim, unless it belongs to another Berth, and waits until it is gone. @throws SandboxError */
export async function removeClaim({ cluster, owner, signal }: ClaimParts, agentId: string): Promise<void> {
  const { namespace } = cluster
  const found = await readClaim(cluster, agentId, signal)
  if (!found || (await ownOf(owner, [labelled(found)])).length === 0) return
  await removeHelper({ cluster, agentId })
  await cluster.call('delete claim', { signal }, ({ core }) =>
    core.deleteNamespacedPersistentVolumeClaim({ namespace, name: nameOf(agentId) }).catch(ignoring(404)),
  )
  await waitUntilGone(cluster, agentId, signal)
}

/** The agents that have a claim. @throws SandboxError */
export async function listClaims({ cluster, owner, signal }: ClaimParts): Promise<string[]> {
  const { namespace } = cluster
  const { items } = await cluster.call('list claims', { signal }, ({ core }) =>
    core.listNamespacedPersistentVolumeClaim({ namespace, labelSelector: INSTANCE_LABEL }),
  )
  return (await ownOf(owner, items.map(labelled))).flatMap(({ Labels }) => Labels?.[AGENT_LABEL] ?? [])
}

const labelled = ({ metadata }: V1PersistentVolumeClaim) => ({ Labels: metadata?.labels })

function readClaim(cluster: Cluster, agentId: string, signal: AbortSignal | undefined) {
  const { namespace } = cluster
  return cluster.call('read claim', { signal }, ({ core }) =>
    core.readNamespacedPersistentVolumeClaim({ namespace, name: nameOf(agentId) }).catch(ignoring(404)),
  )
}

async function waitUntilGone(
  cluster: Cluster,
  agentId: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { namespace } = cluster
  const fieldSelector = `metadata.name=${nameOf(agentId)}`
  const watched: Watched<V1PersistentVolumeClaim> = {
    path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims`,
    fieldSelector,
    list: ({ core }) => core.listNamespacedPersistentVolumeClaim({ namespace, fieldSelector }),
  }
  for await (const change of watchObjects(cluster, watched, within(GONE_MS, signal))) {
    if ('all' in change ? change.all.length === 0 : change.type === 'DELETED') return
  }
}
