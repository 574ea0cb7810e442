/**
 * Reads and writes an agent's home in a cluster as a tar. A helper pod mounts the claim during that time, as the
 * agent's user, so that the agent's pod need not run, and no program of the agent takes part.
 */
import type { V1Pod } from '@kubernetes/client-node'
import { nameOf } from '../names.ts'
import { type Cluster, ignoring } from './cluster.ts'
import { execIn } from './exec.ts'
import { waitForPod } from './pods.ts'

const READY_MS = 120_000
const TAR = ['tar', '--directory', '/home/node']
/** tar's exit code for a file that changed while it was read. */
const CHANGED = 1

export interface HomeParts {
  cluster: Cluster
  agentId: string
  pod: V1Pod
  signal: AbortSignal | undefined
}

/** Reads the claim, even while the agent writes to it. Leaves out files that their owner may not read. */
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

/** Unpacks a tar into the agent's claim, which the caller has just created. */
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

/** Removes a leftover helper first: it may hold the claim on another node. */
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

/** Removes the pod that a backup created, or left behind when it was killed. It would keep the claim in use. */
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
