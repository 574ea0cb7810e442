/**
 * Agents as pods of a Kubernetes cluster. Fixed names (`berth-<agentId>`) act as locks. A sandbox is represented by its
 * record, a ConfigMap with the pod to run; the pod exists only while the sandbox runs. The claim is created first and
 * removed last, so that the leftovers of a killed worker can be found through it. docs/kubernetes.md explains the
 * choice of objects.
 */
import type { V1ConfigMap, V1Pod } from '@kubernetes/client-node'
import { SandboxError } from '../errors.ts'
import { engineImageReference } from '../openclaw/oci/reference.ts'
import { ensureClaim, listClaims, removeClaim } from './kubernetes/claims.ts'
import { type Cluster, ignoring } from './kubernetes/cluster.ts'
import { kubernetesEvents } from './kubernetes/events.ts'
import { execIn } from './kubernetes/exec.ts'
import {
  endOf,
  isEnded,
  isOf,
  isRunning,
  isShut,
  obstacleTo,
  runOf,
  toSandbox,
  wasStarted,
  withRun,
  withShut,
} from './kubernetes/found.ts'
import { readHome, writeHome } from './kubernetes/home.ts'
import { checkIsolation, isNetworkShut, OPEN_NETWORK_ADVICE } from './kubernetes/network-check.ts'
import { ownedBy, type ProxyPeers, policyOf, recordOf } from './kubernetes/objects.ts'
import { checkPod, homePod, type PodOptions } from './kubernetes/pod-spec.ts'
import { deletePod, readPod, waitForPod } from './kubernetes/pods.ts'
import { parseStats, STATS } from './kubernetes/stats.ts'
import {
  AGENT_LABEL,
  belongsToOthers,
  INSTANCE_LABEL,
  isLabelled,
  nameOf,
  ownOf,
  SPEC_LABEL,
  VERSION_LABEL,
} from './names.ts'
import type { Owner } from './owner.ts'
import type {
  CallOptions,
  EngineVersion,
  Sandbox,
  SandboxEvent,
  SandboxRuntime,
  SandboxSpec,
  SandboxStats,
} from './port.ts'

export interface KubernetesOptions {
  cluster: Cluster
  /** The Berth that owns these sandboxes: it ignores what others create in the same namespace. */
  owner: Owner
  /** Versions of the engine that have images. */
  versions: string[]
  pods: PodOptions
  proxy: ProxyPeers
  storageClass?: string | undefined
  /** How long a start waits for its pod; set by tests. */
  startMs?: number
}

const GRACE_MS = 10_000
/** A start waits this long at most. Longer work, such as an image pull, continues, and the next attempt checks it. */
const START_MS = 60_000
/** A node reports within a second that a pod has ended, a busy node within several. */
const END_MS = 15_000
/** For the case that someone else changes the same sandbox at each attempt. */
const TRIES = 20

export class KubernetesRuntime implements SandboxRuntime {
  readonly driver = 'kubernetes'
  readonly #options: KubernetesOptions
  readonly #cluster: Cluster
  readonly #closing = new AbortController()

  constructor(options: KubernetesOptions) {
    this.#options = options
    this.#cluster = options.cluster
  }

  async ensureVolume(
    agentId: string,
    { signal, diskBytes }: CallOptions & { diskBytes?: number | undefined } = {},
  ): Promise<void> {
    await ensureClaim({ ...this.#options, signal }, agentId, diskBytes)
  }

  async create(spec: SandboxSpec, { signal }: CallOptions = {}): Promise<void> {
    const { agentId, engineVersion } = spec
    const { owner, pods, proxy, versions } = this.#options
    if (!versions.includes(engineVersion))
      throw new SandboxError('no_image', `there is no image of version ${engineVersion}`)
    await this.ensureVolume(agentId, { signal, diskBytes: spec.agentd.diskBytes })
    const record = recordOf(spec, owner.instance, pods, proxy)
    await this.#retrying(agentId, async () => {
      const found = await this.#readRecord(agentId, signal)
      if (found && !isLabelled(owner, found.metadata?.labels))
        throw belongsToOthers('ConfigMap', nameOf(agentId), found.metadata?.labels)
      const pod = await readPod(this.#cluster, nameOf(agentId), signal)
      const current = found && isSame(found, record)
      if (current && (!pod || isOf(pod, found))) return true
      // Keeps a pod that others created: `start` reports it.
      if (pod && this.#isOwn(pod)) await deletePod(this.#cluster, pod, { graceSeconds: 10, signal })
      return current || (await this.#writeRecord(found, record, signal))
    })
  }

  async start(agentId: string, { signal }: CallOptions = {}): Promise<Sandbox> {
    await this.#retrying(agentId, async () => {
      const record = await this.#existing(agentId, signal)
      const pod = await readPod(this.#cluster, nameOf(agentId), signal)
      if (pod && !this.#isOwn(pod)) throw belongsToOthers('pod', nameOf(agentId), pod.metadata?.labels)
      if (pod && isOf(pod, record) && !isEnded(pod) && !pod.metadata?.deletionTimestamp) return true
      if (pod) await deletePod(this.#cluster, pod, { graceSeconds: isEnded(pod) ? 0 : 10, signal })
      // Recorded first: a pod that disappears with a lost node has run.
      const noted = wasStarted(record) ? record : await this.#writeRecord(record, withRun(record, {}), signal)
      return noted && (await this.#makePod(agentId, record, signal))
    })
    const running = await waitForPod(
      this.#cluster,
      nameOf(agentId),
      { ms: this.#options.startMs ?? START_MS, signal },
      (pod) => {
        const obstacle = pod
          ? obstacleTo(pod)
          : new SandboxError('internal', 'its pod was deleted during startup')
        if (obstacle) throw obstacle
        requireNoEnd(pod)
        return pod !== undefined && isRunning(pod)
      },
    )
    if (running) await this.#requireShut(agentId, running, signal)
    const sandbox = await this.inspect(agentId, { signal })
    if (sandbox) return sandbox
    throw new SandboxError('not_found', `there is no sandbox of ${agentId}`)
  }

  async stop(
    agentId: string,
    { signal, graceMs = GRACE_MS }: CallOptions & { graceMs?: number } = {},
  ): Promise<void> {
    const record = await this.#own(agentId, signal)
    const pod = record && (await readPod(this.#cluster, nameOf(agentId), signal))
    if (!pod || !this.#isOwn(pod) || isEnded(pod)) return
    // With 0 the API server would forget the pod while it still runs.
    const graceSeconds = Math.max(1, Math.ceil(graceMs / 1000))
    const last = await deletePod(this.#cluster, pod, { graceSeconds, signal })
    await this.#retrying(agentId, async () => {
      const now = await this.#own(agentId, signal)
      return !now || (await this.#writeRecord(now, withRun(now, runOf(last)), signal))
    })
  }

  async remove(agentId: string, { signal, volume }: CallOptions & { volume: boolean }): Promise<void> {
    const name = nameOf(agentId)
    const { namespace } = this.#cluster
    const pod = await readPod(this.#cluster, name, signal)
    if (pod && this.#isOwn(pod)) await deletePod(this.#cluster, pod, { graceSeconds: 1, signal })
    const record = await this.#own(agentId, signal)
    // The policy is deleted along with the record.
    if (record)
      await this.#cluster.call('delete record', { signal }, ({ core }) => {
        const body = { preconditions: { uid: record.metadata?.uid ?? '' } }
        return core.deleteNamespacedConfigMap({ namespace, name, body }).catch(ignoring(404, 409))
      })
    if (volume) await removeClaim({ ...this.#options, signal }, agentId)
  }

  async *readHome(agentId: string, { signal }: CallOptions = {}): AsyncGenerator<Uint8Array> {
    yield* readHome(await this.#homeParts(agentId, signal))
  }

  async writeHome(
    agentId: string,
    content: AsyncIterable<Uint8Array>,
    { signal }: CallOptions = {},
  ): Promise<void> {
    if (await this.#own(agentId, signal)) throw new SandboxError('internal', `${agentId} has a sandbox`)
    await this.remove(agentId, { volume: true, signal })
    await this.ensureVolume(agentId, { signal })
    await writeHome(await this.#homeParts(agentId, signal), content)
  }

  async inspect(agentId: string, { signal }: CallOptions = {}): Promise<Sandbox | undefined> {
    const record = await this.#own(agentId, signal)
    return record && toSandbox(record, await readPod(this.#cluster, nameOf(agentId), signal))
  }

  async list({ signal }: CallOptions = {}): Promise<{ sandboxes: Sandbox[]; volumes: string[] }> {
    // Lists volumes first, so that an agent created in between is in both lists, and one removed in between is in
    // neither.
    const volumes = await listClaims({ ...this.#options, signal })
    const query = { namespace: this.#cluster.namespace, labelSelector: INSTANCE_LABEL }
    const records = await this.#cluster.call('list records', { signal }, ({ core }) =>
      core.listNamespacedConfigMap(query),
    )
    const pods = await this.#cluster.call('list pods', { signal }, ({ core }) =>
      core.listNamespacedPod(query),
    )
    const own = await ownOf(
      this.#options.owner,
      records.items.map((record) => ({ record, Labels: record.metadata?.labels })),
    )
    const podOf = new Map(pods.items.map((pod) => [pod.metadata?.labels?.[AGENT_LABEL], pod]))
    const sandboxes = own.map(({ record }) =>
      toSandbox(record, podOf.get(record.metadata?.labels?.[AGENT_LABEL])),
    )
    const withSandbox = new Set(sandboxes.map((sandbox) => sandbox.agentId))
    return { sandboxes, volumes: volumes.filter((agentId) => !withSandbox.has(agentId)) }
  }

  async stats(agentId: string, { signal }: CallOptions = {}): Promise<SandboxStats> {
    const { state } = toSandbox(
      await this.#existing(agentId, signal),
      await readPod(this.#cluster, nameOf(agentId), signal),
    )
    if (state !== 'running') return { memoryBytes: 0, cpuSeconds: 0, pids: 0 }
    let text = ''
    for await (const chunk of execIn(this.#cluster, nameOf(agentId), STATS, { signal })) text += chunk
    return parseStats(text)
  }

  events({ signal }: { signal: AbortSignal }): AsyncIterable<SandboxEvent> {
    const either = AbortSignal.any([signal, this.#closing.signal])
    return kubernetesEvents(this.#cluster, this.#options.owner, either)
  }

  /** The Node version of an image is unknown here; only its builder knows it. */
  async engines(): Promise<EngineVersion[]> {
    const { versions, pods } = this.#options
    return versions.map((version) => ({
      version,
      place: engineImageReference(pods.image, version),
      bytes: 0,
      obstacle: null,
    }))
  }

  async prepareEngine(version: string): Promise<void> {
    if (this.#options.versions.includes(version)) return
    throw new SandboxError(
      'no_image',
      `nodes pull engine images, and BERTH_ENGINE_VERSIONS does not name version ${version}`,
    )
  }

  /** The registry and the nodes manage the images. */
  async removeEngine(): Promise<void> {}

  async tidyEngines(): Promise<string[]> {
    return []
  }

  async findObstacle({ signal }: CallOptions = {}): Promise<string | null> {
    const { owner, pods, versions } = this.#options
    if (pods.openNetwork) return null
    const image = engineImageReference(pods.image, versions[0] ?? '')
    const isShut = await isNetworkShut(
      this.#cluster,
      checkPod(`berth-check-${owner.instance}`, image, pods),
      signal,
    )
    return isShut ? null : OPEN_NETWORK_ADVICE
  }

  async ping({ signal }: CallOptions = {}): Promise<void> {
    const { namespace } = this.#cluster
    await this.#cluster.call('ping', { signal }, ({ core }) =>
      core.listNamespacedPod({ namespace, limit: 1 }),
    )
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  #isOwn = ({ metadata }: V1Pod | V1ConfigMap) => isLabelled(this.#options.owner, metadata?.labels)

  #readRecord(agentId: string, signal: AbortSignal | undefined): Promise<V1ConfigMap | undefined> {
    const { namespace } = this.#cluster
    return this.#cluster.call('read record', { signal }, ({ core }) =>
      core.readNamespacedConfigMap({ namespace, name: nameOf(agentId) }).catch(ignoring(404)),
    )
  }

  async #own(agentId: string, signal: AbortSignal | undefined): Promise<V1ConfigMap | undefined> {
    const record = await this.#readRecord(agentId, signal)
    return record && this.#isOwn(record) ? record : undefined
  }

  async #existing(agentId: string, signal: AbortSignal | undefined): Promise<V1ConfigMap> {
    const record = await this.#own(agentId, signal)
    if (record) return record
    throw new SandboxError('not_found', `there is no sandbox of ${agentId}`)
  }

  /** @returns false if somebody has changed it since it was read. */
  async #writeRecord(
    before: V1ConfigMap | undefined,
    record: V1ConfigMap,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const { namespace } = this.#cluster
    const { name = '', ...metadata } = record.metadata ?? {}
    const { resourceVersion } = before?.metadata ?? {}
    const body = { ...record, metadata: { ...metadata, name, ...(resourceVersion && { resourceVersion }) } }
    const written = await this.#cluster.call('write record', { signal }, ({ core }) =>
      (before
        ? core.replaceNamespacedConfigMap({ namespace, name, body })
        : core.createNamespacedConfigMap({ namespace, body })
      ).catch(ignoring(404, 409)),
    )
    return written !== undefined
  }

  /** @returns false if another pod has the name. */
  async #makePod(agentId: string, record: V1ConfigMap, signal: AbortSignal | undefined): Promise<boolean> {
    const { namespace } = this.#cluster
    const { owner, pods, proxy } = this.#options
    const ownerReferences = ownedBy(record)
    const policy = policyOf(agentId, owner.instance, proxy, pods.egressUrl)
    const pod = JSON.parse(record.data?.pod ?? '{}') as V1Pod
    await this.#cluster.call('make policy', { signal }, async ({ networking }) => {
      const body = { ...policy, metadata: { ...policy.metadata, ownerReferences } }
      const made = await networking.createNamespacedNetworkPolicy({ namespace, body }).catch(ignoring(409))
      if (!made) await networking.replaceNamespacedNetworkPolicy({ namespace, name: nameOf(agentId), body })
    })
    const made = await this.#cluster.call('make pod', { signal }, ({ core }) =>
      core
        .createNamespacedPod({ namespace, body: { ...pod, metadata: { ...pod.metadata, ownerReferences } } })
        .catch(ignoring(409)),
    )
    return made !== undefined
  }

  /** Checks each pod once, before `start` returns its address. @throws SandboxError; it ends pods with open networks. */
  async #requireShut(agentId: string, pod: V1Pod, signal: AbortSignal | undefined): Promise<void> {
    const { openNetwork, guardSeconds: seconds } = this.#options.pods
    if (openNetwork || isShut(await this.#existing(agentId, signal), pod)) return
    const name = nameOf(agentId)
    const reason = await checkIsolation(this.#cluster, name, { seconds, signal }).catch((error) => error)
    if (reason) {
      // A pod that has ended runs no commands, and the way it ended says more than the failed check.
      const bounds = { ms: END_MS, signal, late: () => reason }
      const error = await waitForPod(this.#cluster, name, bounds, requireNoEnd).then(
        () => reason,
        (end) => end,
      )
      if (reason.code === 'internal') await this.stop(agentId, { graceMs: 1000, signal })
      throw error
    }
    await this.#retrying(agentId, async () => {
      const record = await this.#existing(agentId, signal)
      return this.#writeRecord(record, withShut(record, pod), signal)
    })
  }

  async #homeParts(agentId: string, signal: AbortSignal | undefined) {
    const { pods, versions } = this.#options
    const record = await this.#own(agentId, signal)
    const pod = record && (await readPod(this.#cluster, nameOf(agentId), signal))
    const version = record?.metadata?.labels?.[VERSION_LABEL] ?? versions[0] ?? ''
    // Only one node can use a claim at a time.
    const node = pod && isRunning(pod) ? pod.spec?.nodeName : undefined
    const helper = homePod(agentId, engineImageReference(pods.image, version), {
      ...pods,
      ...(node && { node }),
    })
    return { cluster: this.#cluster, agentId, pod: helper, signal }
  }

  /** Reads and acts again until no concurrent change interferes. */
  async #retrying(agentId: string, act: () => Promise<boolean>): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) if (await act()) return
    throw new SandboxError('internal', `other workers keep changing the sandbox of ${agentId}`)
  }
}

/** @returns whether the pod is gone. @throws SandboxError that explains how the pod ended. */
function requireNoEnd(pod: V1Pod | undefined): boolean {
  if (!pod || !isEnded(pod)) return !pod
  throw endOf(pod)
}

/** True for two records with the same spec and the same owner. */
const isSame = (a: V1ConfigMap, b: V1ConfigMap) =>
  [SPEC_LABEL, INSTANCE_LABEL].every((label) => a.metadata?.labels?.[label] === b.metadata?.labels?.[label])
