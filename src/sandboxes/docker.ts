/**
 * Agents as Docker containers. The fixed names of container, volume and network (`berth-<agentId>`) act as locks: a
 * process that finds one adopts it. The volume is created first and removed last, so that the leftovers of a killed
 * worker can be found through it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContainerCreateOptions, ContainerInspectInfo } from 'dockerode'
import { SandboxError } from '../errors.ts'
import { bridgeOf } from '../lib/agent-id.ts'
import { ignoreStatus } from '../openclaw/docker-build.ts'
import {
  buildEngineImage,
  canBuild,
  engineImageName,
  listEngineImages,
  removeEngineImages,
} from '../openclaw/image.ts'
import { removeInstalledEngine } from '../openclaw/install.ts'
import { type Tidying, tidyImages, tidyInstalled } from '../openclaw/tidy.ts'
import { DiskHelper } from './docker/disk-helper.ts'
import { DockerEngine, SLOW_MS } from './docker/engine.ts'
import { dockerEvents } from './docker/events.ts'
import { addressOf, endpointOf, faultOf, hasLabels, isWhole, toSandbox, toStats } from './docker/found.ts'
import { readHome, writeHome } from './docker/home.ts'
import { ensureNetwork, removeNetwork } from './docker/network.ts'
import { containerOptions } from './docker/spec.ts'
import { ensureVolume, listVolumes, removeVolume, type VolumeParts } from './docker/volumes.ts'
import {
  AGENT_LABEL,
  belongsToOthers,
  isLabelled,
  LABELLED,
  labelsOf,
  nameOf,
  ownOf,
  SPEC_LABEL,
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

export interface DockerOptions {
  /** DOCKER_HOST; undefined: the usual socket. */
  host?: string | undefined
  /** The Berth that owns these sandboxes: it ignores what others create on the same engine. */
  owner: Owner
  /** BERTH_AGENT_SUBNETS. */
  subnets: string
  /** Current port of the egress proxy, on the host's address in each agent's network. */
  egressPort(): Promise<number>
  /** BERTH_DISKS_SOCKET: the disk helper's socket; undefined: new volumes have no hard limit. */
  disksSocket?: string | undefined
  /** The base image of engine images. */
  baseImage: string
  /** Folder of installed engine versions, from which images are built. */
  enginesDir: string
}

const GRACE_MS = 10_000
/** Time for stopping in addition to the grace period. */
const STOP_MARGIN_MS = 20_000
/** Installing and building have limits of their own, which add up to less. */
const BUILD_MS = 40 * 60_000
/** The engine reserves a name before it finishes creating the container, which takes seconds under load. */
const MAKE_MS = 60_000
const POLL_MS = 100

export class DockerRuntime implements SandboxRuntime {
  readonly driver = 'docker'
  readonly #engine: DockerEngine
  readonly #options: DockerOptions
  readonly #disks: DiskHelper | undefined
  readonly #closing = new AbortController()

  constructor(options: DockerOptions) {
    this.#options = options
    this.#engine = new DockerEngine(options.host)
    this.#disks = options.disksSocket ? new DiskHelper(options.disksSocket) : undefined
  }

  async ensureVolume(
    agentId: string,
    options: CallOptions & { diskBytes?: number | undefined } = {},
  ): Promise<void> {
    await ensureVolume(this.#volumeParts, agentId, options)
  }

  async create(spec: SandboxSpec, { signal }: CallOptions = {}): Promise<void> {
    const { agentId } = spec
    const { owner, subnets: pool } = this.#options
    const { instance } = owner
    const egressPort = await this.#egressPort()
    const bridge = bridgeOf(agentId, egressPort)
    const image = await this.#image(spec.engineVersion, signal)
    const { runsc } = await this.#engine.facts()
    const { diskBytes } = spec.agentd
    const hardLimit = await ensureVolume(this.#volumeParts, agentId, { signal, diskBytes })
    const deadline = performance.now() + MAKE_MS
    do {
      const network = await ensureNetwork(this.#engine, { owner, agentId, pool, bridge, signal })
      if (!network.current) {
        await this.stop(agentId, { signal })
        await this.remove(agentId, { volume: false, signal })
        continue
      }
      const { name, hash, body } = containerOptions({
        spec,
        instance,
        image,
        network,
        egressPort,
        runsc,
        hardLimit,
      })
      const found = await this.#find(agentId, signal)
      if (found && !isLabelled(owner, found.Config.Labels))
        throw belongsToOthers('container', name, found.Config.Labels)
      const labels = { ...labelsOf(instance, agentId), [SPEC_LABEL]: hash }
      if (found && isWhole(found) && hasLabels(found, labels) && !faultOf(found)) return
      if (found) {
        await this.stop(agentId, { signal })
        await this.#removeContainer(found.Id, signal)
      }
      const made = await this.#engine.call(
        'create container',
        { ms: SLOW_MS, signal },
        (docker, abortSignal) =>
          docker.createContainer(inBody(name, body, abortSignal)).catch(ignoreStatus(409)),
      )
      if (made) return
      // Another worker was faster; the next round inspects its container.
      await sleep(POLL_MS, undefined, { signal })
    } while (performance.now() < deadline)
    throw new SandboxError('internal', `other workers keep creating and removing the container of ${agentId}`)
  }

  async start(agentId: string, { signal }: CallOptions = {}): Promise<Sandbox> {
    const { owner, subnets: pool } = this.#options
    const found = await this.#existing(agentId, signal)
    const sandbox = toSandbox(found)
    if (sandbox.state === 'running') return sandbox
    const address = addressOf(found)
    const bridge = bridgeOf(agentId, await this.#egressPort())
    const network = await ensureNetwork(this.#engine, { owner, agentId, pool, bridge, address, signal })
    await this.#rejoin(found, network.id, signal)
    await this.#engine.call('start container', { ms: SLOW_MS, signal }, (docker, abortSignal) =>
      docker.getContainer(found.Id).start({ abortSignal }).catch(ignoreStatus(304)),
    )
    return toSandbox(await this.#existing(agentId, signal))
  }

  async stop(
    agentId: string,
    { signal, graceMs = GRACE_MS }: CallOptions & { graceMs?: number } = {},
  ): Promise<void> {
    const found = await this.#own(agentId, signal)
    if (!found?.State.Running) return
    const ms = graceMs + STOP_MARGIN_MS
    await this.#engine.call('stop container', { ms, signal }, (docker, abortSignal) =>
      docker
        .getContainer(found.Id)
        .stop({ t: Math.ceil(graceMs / 1000), abortSignal })
        .catch(ignoreStatus(304, 404)),
    )
  }

  async remove(agentId: string, { signal, volume }: CallOptions & { volume: boolean }): Promise<void> {
    const { owner } = this.#options
    const found = await this.#own(agentId, signal)
    if (found) await this.#removeContainer(found.Id, signal)
    await removeNetwork(this.#engine, { owner, agentId, signal })
    if (volume) await removeVolume(this.#volumeParts, agentId, signal)
  }

  readHome(agentId: string, { signal }: CallOptions = {}): AsyncIterable<Uint8Array> {
    return readHome(this.#engine, agentId, signal)
  }

  async writeHome(
    agentId: string,
    content: AsyncIterable<Uint8Array>,
    { signal }: CallOptions = {},
  ): Promise<void> {
    if (await this.#own(agentId, signal)) throw new SandboxError('internal', `${agentId} has a sandbox`)
    await this.remove(agentId, { volume: true, signal })
    await this.ensureVolume(agentId, { signal })
    await writeHome(this.#engine, agentId, content, signal)
  }

  async inspect(agentId: string, { signal }: CallOptions = {}): Promise<Sandbox | undefined> {
    const found = await this.#own(agentId, signal)
    return found && toSandbox(found)
  }

  async list({ signal }: CallOptions = {}): Promise<{ sandboxes: Sandbox[]; volumes: string[] }> {
    // Lists volumes first, so that an agent created in between is in both lists, and one removed in between is in
    // neither.
    const volumes = await listVolumes(this.#volumeParts, signal)
    const all = await this.#engine.call('list containers', { signal }, (docker, abortSignal) =>
      docker.listContainers({ all: true, filters: LABELLED, abortSignal }),
    )
    const containers = await ownOf(this.#options.owner, all)
    const sandboxes: Sandbox[] = []
    // The list has neither exit codes nor times. Inspects one at a time, because a hundred concurrent calls would
    // strain the engine.
    for (const { Labels } of containers) {
      const sandbox = await this.inspect(Labels[AGENT_LABEL] ?? '', { signal })
      if (sandbox) sandboxes.push(sandbox)
    }
    const withSandbox = new Set(sandboxes.map((sandbox) => sandbox.agentId))
    return { sandboxes, volumes: volumes.filter((agentId) => !withSandbox.has(agentId)) }
  }

  async stats(agentId: string, { signal }: CallOptions = {}): Promise<SandboxStats> {
    const { Id } = await this.#existing(agentId, signal)
    return this.#engine.call('stats', { signal }, async (docker) =>
      toStats(await docker.getContainer(Id).stats({ stream: false, 'one-shot': true })),
    )
  }

  events({ signal }: { signal: AbortSignal }): AsyncIterable<SandboxEvent> {
    const either = AbortSignal.any([signal, this.#closing.signal])
    return dockerEvents(this.#engine, this.#options.owner, either)
  }

  async engines({ signal }: CallOptions = {}): Promise<EngineVersion[]> {
    const images = await this.#engine.call('list images', { signal }, (docker) =>
      listEngineImages(docker, this.#options.baseImage),
    )
    return images
      .filter((image) => image.current)
      .map(({ version, name, bytes, obstacle }) => ({ version, place: name, bytes, obstacle }))
  }

  async prepareEngine(
    version: string,
    { signal, onLine }: CallOptions & { onLine?: (line: string) => void } = {},
  ): Promise<void> {
    const { baseImage, enginesDir } = this.#options
    // A call with a short limit comes first, to tell a hanging Docker from a long build.
    const atHand = await this.engines({ signal })
    if (atHand.some((one) => one.version === version && one.obstacle === null)) return
    await this.#engine.call('build image', { ms: BUILD_MS, signal }, (docker, abortSignal) =>
      buildEngineImage(docker, { version, baseImage, enginesDir, onLine, signal: abortSignal }),
    )
  }

  async removeEngine(version: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#engine.call('remove images', { ms: SLOW_MS, signal }, (docker) =>
      removeEngineImages(docker, version),
    )
    // The engine's folder from which the image was built.
    await removeInstalledEngine(this.#options.enginesDir, version)
  }

  async tidyEngines({ signal, ...tidying }: CallOptions & Tidying): Promise<string[]> {
    const { baseImage, enginesDir } = this.#options
    const images = await this.#engine.call('tidy images', { ms: SLOW_MS, signal }, (docker) =>
      tidyImages(docker, { ...tidying, baseImage }),
    )
    return [...images, ...(await tidyInstalled(enginesDir, tidying))]
  }

  async ping({ signal }: CallOptions = {}): Promise<void> {
    await this.#engine.call('ping', { signal }, (docker) => docker.ping())
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  /** The host's address on Docker's own bridge; null if there is no such bridge. @throws SandboxError */
  async defaultGateway(): Promise<string | null> {
    const networks = await this.#engine.call('list networks', {}, (docker, abortSignal) =>
      docker.listNetworks({ filters: { name: ['bridge'], driver: ['bridge'] }, abortSignal }),
    )
    const bridge = networks.find((network) => network.Name === 'bridge')
    return bridge?.IPAM?.Config?.[0]?.Gateway ?? null
  }

  /** True if engine images can be built: the base image exists, or can be pulled. @throws SandboxError */
  canBuild(): Promise<boolean> {
    return this.#engine.call('look for the base image', { ms: SLOW_MS }, (docker, abortSignal) =>
      canBuild(docker, this.#options.baseImage, abortSignal),
    )
  }

  get #volumeParts(): VolumeParts {
    return { engine: this.#engine, disks: this.#disks, owner: this.#options.owner }
  }

  async #egressPort(): Promise<number> {
    try {
      return await this.#options.egressPort()
    } catch (error) {
      const message = `cannot get the egress port from the agent proxy: ${(error as Error).message}`
      throw new SandboxError('unreachable', message, { cause: error })
    }
  }

  /** Docker refers to a container's network by id, so a recreated network counts as another one. */
  async #rejoin(
    found: ContainerInspectInfo,
    networkId: string,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const joined = endpointOf(found)?.NetworkID
    if (!joined || joined === networkId) return
    const EndpointConfig = { IPAMConfig: { IPv4Address: addressOf(found) } }
    await this.#engine.call('join network', { ms: SLOW_MS, signal }, (docker) =>
      docker.getNetwork(networkId).connect({ Container: found.Id, EndpointConfig }),
    )
  }

  async #image(version: string, signal: AbortSignal | undefined): Promise<{ name: string; id: string }> {
    const name = await this.#engine.call('name image', { signal }, () =>
      engineImageName(version, this.#options.baseImage),
    )
    const found = await this.#engine.call('inspect image', { signal }, (docker) =>
      docker.getImage(name).inspect().catch(ignoreStatus(404)),
    )
    if (found) return { name, id: found.Id }
    throw new SandboxError('no_image', `there is no image ${name}`)
  }

  /** The container by name, no matter who created it; undefined if it does not exist or is being removed. */
  async #find(agentId: string, signal: AbortSignal | undefined): Promise<ContainerInspectInfo | undefined> {
    const found = await this.#engine.call('inspect container', { signal }, (docker, abortSignal) =>
      docker.getContainer(nameOf(agentId)).inspect({ abortSignal }).catch(ignoreStatus(404)),
    )
    return found?.State.Status === 'removing' ? undefined : found
  }

  async #own(agentId: string, signal: AbortSignal | undefined): Promise<ContainerInspectInfo | undefined> {
    const found = await this.#find(agentId, signal)
    return isLabelled(this.#options.owner, found?.Config.Labels) ? found : undefined
  }

  async #existing(agentId: string, signal: AbortSignal | undefined): Promise<ContainerInspectInfo> {
    const found = await this.#own(agentId, signal)
    if (found) return found
    throw new SandboxError('not_found', `there is no container of ${agentId}`)
  }

  /** Removes a container, running or not, and waits until it is gone. Another call may already be removing it (409). */
  async #removeContainer(id: string, signal: AbortSignal | undefined): Promise<void> {
    await this.#engine.call('remove container', { ms: SLOW_MS, signal }, async (docker, abortSignal) => {
      const container = docker.getContainer(id)
      while ((await container.remove({ force: true }).catch(ignoreStatus(404, 409))) === undefined) {
        const left = await container.inspect({ abortSignal }).catch(ignoreStatus(404))
        if (!left) return
        await sleep(POLL_MS, undefined, { signal: abortSignal })
      }
    })
  }
}

/** The library would otherwise also put the whole body into the URL. */
function inBody(
  name: string,
  _body: ContainerCreateOptions,
  abortSignal: AbortSignal,
): ContainerCreateOptions {
  return { _query: { name }, _body, abortSignal } as ContainerCreateOptions
}
