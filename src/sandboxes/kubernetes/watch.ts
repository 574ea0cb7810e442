/**
 * Watches objects of a cluster. The client's own informer requests no bookmarks and stops at the first failure, such as
 * a restart of the API server. This one continues.
 */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubernetesListObject, KubernetesObject } from '@kubernetes/client-node'
import { type Client, type Cluster, statusOf } from './cluster.ts'

/** Everything is listed again after this time, whatever the watch reports. */
const RESYNC_MS = 10 * 60_000
const FIRST_PAUSE_MS = 100
const LAST_PAUSE_MS = 5000
/** The status if the resource version is too old to resume from. */
const GONE = 410

export interface Watched<T extends KubernetesObject> {
  /** The API path that contains the objects. */
  path: string
  labelSelector?: string
  fieldSelector?: string
  list(client: Client): Promise<KubernetesListObject<T>>
}

interface ObjectChange<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  object: T
}

export type Change<T> = { all: T[] } | ObjectChange<T>

/**
 * Yields all objects, then each change. Lists again if it may have missed changes: yields objects that are gone as
 * DELETED, in their last known state, then all objects.
 * @throws SandboxError if the first list fails; the signal's reason.
 */
export async function* watchObjects<T extends KubernetesObject>(
  cluster: Cluster,
  watched: Watched<T>,
  signal: AbortSignal,
): AsyncGenerator<Change<T>> {
  const list = () => cluster.call(`list ${watched.path}`, { signal }, watched.list)
  let all = await list()
  /** Objects by their uid. */
  const known = new Map<string, T>()
  for (;;) {
    const listed = new Set(all.items.map(uidOf))
    for (const [uid, object] of known) {
      if (listed.has(uid)) continue
      known.delete(uid)
      yield { type: 'DELETED', object }
    }
    for (const object of all.items) known.set(uidOf(object), object)
    yield { all: all.items }
    for await (const change of follow(cluster, watched, all.metadata?.resourceVersion, signal)) {
      if (change.type === 'DELETED') known.delete(uidOf(change.object))
      else known.set(uidOf(change.object), change.object)
      yield change
    }
    all = await untilAnswered(list, signal)
  }
}

const uidOf = ({ metadata }: KubernetesObject) => metadata?.uid ?? ''

async function untilAnswered<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = longer(pause)) {
    try {
      return await call()
    } catch {
      signal.throwIfAborted()
    }
    await rest(pause, signal)
  }
}

const longer = (pause: number) => Math.min(2 * pause, LAST_PAUSE_MS)
const rest = (pause: number, signal: AbortSignal) =>
  sleep(pause * (0.5 + Math.random()), undefined, { signal })

/** Reconnects after connections end, until a new list is due. */
async function* follow<T extends KubernetesObject>(
  cluster: Cluster,
  watched: Watched<T>,
  from: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<ObjectChange<T>> {
  const resync = performance.now() + RESYNC_MS
  let version = from
  let pause = FIRST_PAUSE_MS
  while (performance.now() < resync) {
    try {
      for await (const change of connect(cluster, watched, version, signal)) {
        if (change.type === 'ERROR') {
          if ((change.object as { code?: number }).code === GONE) return
          break
        }
        pause = FIRST_PAUSE_MS
        version = change.object.metadata?.resourceVersion
        if (change.type !== 'BOOKMARK') yield change as ObjectChange<T>
      }
    } catch (error) {
      signal.throwIfAborted()
      if (statusOf(error) === GONE) return
    }
    await rest(pause, signal)
    pause = longer(pause)
  }
}

interface Line<T> {
  type: string
  object: T
}

/** The lines of one connection. */
async function* connect<T extends KubernetesObject>(
  cluster: Cluster,
  { path, labelSelector, fieldSelector }: Watched<T>,
  resourceVersion: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Line<T>> {
  const lines = new Readable({ objectMode: true, signal, read() {} })
  const query = { resourceVersion, labelSelector, fieldSelector, allowWatchBookmarks: true }
  const connection = await cluster.call(`watch ${path}`, { signal }, ({ library, config }) =>
    new library.Watch(config).watch(
      path,
      query,
      (type: string, object: T) => lines.push({ type, object }),
      (error) => (error ? lines.destroy(error) : lines.push(null)),
    ),
  )
  try {
    yield* lines
  } finally {
    connection.abort()
  }
}
