/**
 * The home of an agent in a cluster, as a tar. A pod of its own holds the claim meanwhile, as the agent's user: so neither the
 * agent's pod has to run, nor does what the agent made take part.
 */
import type { V1Pod } from '@kubernetes/client-node'
import { nameOf } from '../names.ts'
import { type Cluster, ignoring } from './cluster.ts'
import { execIn } from './exec.ts'
import { waitForPod } from './pods.ts'

const READY_MS = 120_000
const TAR = ['tar', '--directory', '/home/node']
/** The exit code of tar for a file that changed while it was read. */
const CHANGED = 1

export interface HomeParts {
  cluster: Cluster
  agentId: string
  pod: V1Pod
  signal: AbortSignal | undefined
}

/** Reads the claim as it is, also while the agent writes to it. What its owner may not read is left out. */
export async function* readHome(parts: HomeParts): AsyncGenerator<Uint8Array> {
  const { cluster, signal } = parts
  const name = await makeHelper(parts)
  try {
    const command = [...TAR, '--create', '--ignore-failed-read', '.']
    yield* execIn(cluster, name, command, { signal, allowed: [CHANGED] })
  } finally {
    await removeHelper(parts)
  }
}

/** Unpacks a tar into the agent's claim, which the caller has made anew. */
export async function writeHome(parts: HomeParts, content: AsyncIterable<Uint8Array>): Promise<void> {
  const { cluster, signal } = parts
  const name = await makeHelper(parts)
  try {
    const command = [...TAR, '--extract', '--preserve-permissions', '--no-overwrite-dir']
    for await (const _ of execIn(cluster, name, command, { input: content, signal }));
  } finally {
    await removeHelper(parts)
  }
}

/** The helper of an agent that nobody removed may hold the claim of another node. */
async function makeHelper(parts: HomeParts): Promise<string> {
  const { cluster, pod, signal } = parts
  await removeHelper(parts)
  const { namespace } = cluster
  await cluster.call('make helper', { signal }, ({ core }) =>
    core.createNamespacedPod({ namespace, body: pod }),
  )
  const name = pod.metadata?.name ?? ''
  await waitForPod(cluster, name, { ms: READY_MS, signal }, (found) => found?.status?.phase === 'Running')
  return name
}

/** Removes the pod that a backup has made, or left behind where it was killed: it would keep the claim. */
export async function removeHelper({
  cluster,
  agentId,
}: Pick<HomeParts, 'cluster' | 'agentId'>): Promise<void> {
  const name = `${nameOf(agentId)}-home`
  const { namespace } = cluster
  const removed = await cluster.call('remove helper', {}, ({ core }) =>
    core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }).catch(ignoring(404)),
  )
  if (removed) await waitForPod(cluster, name, { ms: READY_MS }, (found) => found === undefined)
}
