/** Events of a Berth's sandboxes, derived from changes of its pods and records. */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1ConfigMap, V1Pod } from '@kubernetes/client-node'
import { AGENT_LABEL, INSTANCE_LABEL, isLabelled } from '../names.ts'
import type { Owner } from '../owner.ts'
import type { SandboxEvent } from '../port.ts'
import type { Cluster } from './cluster.ts'
import { isRunning } from './found.ts'
import { watchedPods } from './pods.ts'
import { type Watched, watchObjects } from './watch.ts'

const RETRY_MS = 1000

/** Yields until `signal` fires; resumes by itself after the cluster was away. */
export async function* kubernetesEvents(
  cluster: Cluster,
  owner: Owner,
  signal: AbortSignal,
): AsyncGenerator<SandboxEvent> {
  const events = new Readable({ objectMode: true, read() {} })
  const tell = (event: SandboxEvent) => events.push(event)
  const all = [followPods(cluster, owner, tell), followRecords(cluster, owner, tell)]
  const following = all.map(async (follow) => {
    while (!signal.aborted) {
      // Other calls report that the cluster is away.
      await follow(signal).catch(() => {})
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {})
    }
  })
  void Promise.all(following).then(() => events.push(null))
  yield* events
}

type Follower = (signal: AbortSignal) => Promise<void>

/** Derives starts and exits by comparing each pod with its previous state. */
function followPods(cluster: Cluster, owner: Owner, tell: (event: SandboxEvent) => void): Follower {
  /** The uids of running pods, by name. */
  const running = new Map<string, string>()
  const note = (pod: V1Pod, gone: boolean) => {
    const { name = '', uid = '', labels } = pod.metadata ?? {}
    const agentId = labels?.[AGENT_LABEL]
    if (!agentId || !isLabelled(owner, labels)) return
    const before = running.get(name)
    const runs = !gone && isRunning(pod)
    if (before && (!runs || before !== uid)) {
      running.delete(name)
      tell({ agentId, type: 'exited' })
    }
    if (runs && before !== uid) {
      running.set(name, uid)
      tell({ agentId, type: 'started' })
    }
    // It is unknown whether the pod ever ran.
    if (!before && !runs && (gone || pod.status?.phase === 'Failed')) tell({ agentId, type: 'exited' })
  }
  const watched = watchedPods(cluster.namespace, { labelSelector: INSTANCE_LABEL })
  return async (signal) => {
    for await (const change of watchObjects(cluster, watched, signal)) {
      if ('all' in change) for (const pod of change.all) note(pod, false)
      else note(change.object, change.type === 'DELETED')
    }
  }
}

/** A sandbox counts as removed when its record is. */
function followRecords(cluster: Cluster, owner: Owner, tell: (event: SandboxEvent) => void): Follower {
  const { namespace } = cluster
  const selector = { labelSelector: INSTANCE_LABEL }
  const watched: Watched<V1ConfigMap> = {
    path: `/api/v1/namespaces/${namespace}/configmaps`,
    ...selector,
    list: ({ core }) => core.listNamespacedConfigMap({ namespace, ...selector }),
  }
  return async (signal) => {
    for await (const change of watchObjects(cluster, watched, signal)) {
      if (!('type' in change) || change.type !== 'DELETED') continue
      const { labels } = change.object.metadata ?? {}
      const agentId = labels?.[AGENT_LABEL]
      if (agentId && isLabelled(owner, labels)) tell({ agentId, type: 'removed' })
    }
  }
}
