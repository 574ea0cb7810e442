/**
 * Agents as Docker containers. The names of container, volume and network are fixed (`berth-<agentId>`) and are
 * the locks: whoever comes second adopts what is there. The volume is made first and removed last, so whatever a
 * killed worker leaves half-made is found through it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContainerCreateOptions, ContainerInspectInfo } from 'dockerode'
import { AGENTD_PORT } from '../../agentd/protocol.ts'
import {
  buildEngineImage,
  canBuild,
  engineImageName,
  listEngineImages,
  removeEngineImages,
} from '../engine/image.ts'
import { removeInstalledEngine } from '../engine/install.ts'
import { DockerEngine, SLOW_MS } from './docker/engine.ts'
import { ignoring } from './docker/errors.ts'
import { dockerEvents } from './docker/events.ts'
import {
  AGENT_LABEL,
  INSTANCE_LABEL,
  labelsOf,
  nameOf,
  ownFilter,
  SPEC_LABEL,
  VERSION_LABEL,
} from './docker/names.ts'
import { ensureNetwork, removeNetwork } from './docker/network.ts'
import { containerOptions } from './docker/spec.ts'
import { toStats } from './docker/stats.ts'
import {
  ContainerError,
  type Containers,
  type EngineAtHand,
  type Sandbox,
  type SandboxEvent,
  type SandboxSpec,
  type SandboxStats,
} from './port.ts'

export interface DockerOptions {
  /** DOCKER_HOST; undefined: the usual socket. */
  host?: string | undefined
  /** Which Berth this is: it sees nothing of what others have made on the same engine. */
  instance: string
  /** BERTH_AGENT_SUBNETS. */
  subnets: string
  /** Where the egress proxy listens, on the host's address in each agent's network. */
  egressPort: number
  /** What images are built from. */
  baseImage: string
  /** Folder of installed engine versions, from which images are built. */
  enginesDir: string
}

interface CallOptions {
  signal?: AbortSignal
}

const GRACE_MS = 10_000
/** For what a stop takes beside its grace. */
const STOP_MARGIN_MS = 20_000
/** Installing and building have bounds of their own; together they are below this. */
const BUILD_MS = 40 * 60_000
/** The engine takes a name as it begins to make a container, which under load takes seconds. */
const MAKE_MS = 60_000
const POLL_MS = 100
/** The engine's word for "never". */
const NEVER = '0001-01-01T00:00:00Z'

export class DockerContainers implements Containers {
  readonly runtime = 'docker'
  readonly #engine: DockerEngine
  readonly #options: DockerOptions
  readonly #closing = new AbortController()

  constructor(options: DockerOptions) {
    this.#options = options
    this.#engine = new DockerEngine(options.host)
  }

  async ensureVolume(agentId: string, { signal }: CallOptions = {}): Promise<void> {
    const Name = nameOf(agentId)
    const Labels = labelsOf(this.#options.instance, agentId)
    const found = await this.#engine.call(
      'make volume',
      { ms: SLOW_MS, signal },
      async (docker, abortSignal) => {
        // One that is there is left as it is.
        await docker.createVolume({ Name, Labels, abortSignal })
        return docker.getVolume(Name).inspect()
      },
    )
    if (found.Labels?.[INSTANCE_LABEL] !== this.#options.instance) throw belongsToOthers('volume', agentId)
  }

  async create(spec: SandboxSpec, { signal }: CallOptions = {}): Promise<void> {
    const { agentId } = spec
    const { instance, egressPort, subnets: pool } = this.#options
    const image = await this.#image(spec.engineVersion, signal)
    const { runsc } = await this.#engine.facts()
    await this.ensureVolume(agentId, { signal })
    const deadline = performance.now() + MAKE_MS
    do {
      const network = await ensureNetwork(this.#engine, { instance, agentId, pool, signal })
      const { name, hash, body } = containerOptions({ spec, instance, image, network, egressPort, runsc })
      const found = await this.#find(agentId, signal)
      if (found && found.Config.Labels[INSTANCE_LABEL] !== instance)
        throw belongsToOthers('container', agentId)
      if (found && isWhole(found) && found.Config.Labels[SPEC_LABEL] === hash) return
      if (found) {
        await this.stop(agentId, { signal })
        await this.#removeContainer(found.Id, signal)
      }
      const made = await this.#engine.call(
        'create container',
        { ms: SLOW_MS, signal },
        (docker, abortSignal) => docker.createContainer(inBody(name, body, abortSignal)).catch(ignoring(409)),
      )
      if (made) return
      // Another worker was faster: what it makes is looked at.
      await sleep(POLL_MS, undefined, { signal })
    } while (performance.now() < deadline)
    throw new ContainerError(
      'internal',
      `the container of ${agentId} is made and removed by others all the time`,
    )
  }

  async start(agentId: string, { signal }: CallOptions = {}): Promise<Sandbox> {
    const { instance, subnets: pool } = this.#options
    const found = await this.#existing(agentId, signal)
    const sandbox = toSandbox(found)
    if (sandbox.state === 'running') return sandbox
    const address = addressOf(found)
    const network = await ensureNetwork(this.#engine, { instance, agentId, pool, address, signal })
    await this.#rejoin(found, network.id, signal)
    await this.#engine.call('start container', { ms: SLOW_MS, signal }, (docker, abortSignal) =>
      docker.getContainer(found.Id).start({ abortSignal }).catch(ignoring(304)),
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
        .catch(ignoring(304, 404)),
    )
  }

  async remove(agentId: string, { signal, volume }: CallOptions & { volume: boolean }): Promise<void> {
    const { instance } = this.#options
    const found = await this.#own(agentId, signal)
    if (found) await this.#removeContainer(found.Id, signal)
    await removeNetwork(this.#engine, { instance, agentId, signal })
    if (volume && (await this.#volumes(signal)).includes(agentId)) {
      await this.#engine.call('remove volume', { ms: SLOW_MS, signal }, (docker, abortSignal) =>
        docker.getVolume(nameOf(agentId)).remove({ abortSignal }).catch(ignoring(404)),
      )
    }
  }

  async inspect(agentId: string, { signal }: CallOptions = {}): Promise<Sandbox | undefined> {
    const found = await this.#own(agentId, signal)
    return found && toSandbox(found)
  }

  async list({ signal }: CallOptions = {}): Promise<{ sandboxes: Sandbox[]; volumes: string[] }> {
    // Volumes first: what is made meanwhile is in both lists, and what is removed in neither.
    const volumes = await this.#volumes(signal)
    const containers = await this.#engine.call('list containers', { signal }, (docker, abortSignal) =>
      docker.listContainers({ all: true, filters: ownFilter(this.#options.instance), abortSignal }),
    )
    const sandboxes: Sandbox[] = []
    // The list has neither exit codes nor times; one by one, as a hundred at once would be no kindness.
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
    return dockerEvents(this.#engine, this.#options.instance, either)
  }

  async engineVersions(options: CallOptions = {}): Promise<string[]> {
    return (await this.engines(options)).map(({ version }) => version)
  }

  async engines({ signal }: CallOptions = {}): Promise<EngineAtHand[]> {
    const images = await this.#engine.call('list images', { signal }, (docker) =>
      listEngineImages(docker, this.#options.baseImage),
    )
    return images
      .filter((image) => image.current)
      .map(({ version, name, bytes }) => ({ version, place: name, bytes }))
  }

  async prepareEngine(
    version: string,
    { signal, onLine }: CallOptions & { onLine?: (line: string) => void } = {},
  ): Promise<void> {
    const { baseImage, enginesDir } = this.#options
    await this.#engine.call('build image', { ms: BUILD_MS, signal }, (docker, abortSignal) =>
      buildEngineImage(docker, { version, baseImage, enginesDir, onLine, signal: abortSignal }),
    )
  }

  async removeEngine(version: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#engine.call('remove images', { ms: SLOW_MS, signal }, (docker) =>
      removeEngineImages(docker, version),
    )
    // What the image was made from.
    await removeInstalledEngine(this.#options.enginesDir, version)
  }

  async ping({ signal }: CallOptions = {}): Promise<void> {
    await this.#engine.call('ping', { signal }, (docker) => docker.ping())
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  /** The host's address on Docker's own bridge; null where there is none. @throws ContainerError */
  async defaultGateway(): Promise<string | null> {
    const networks = await this.#engine.call('list networks', {}, (docker, abortSignal) =>
      docker.listNetworks({ filters: { name: ['bridge'], driver: ['bridge'] }, abortSignal }),
    )
    const bridge = networks.find((network) => network.Name === 'bridge')
    return bridge?.IPAM?.Config?.[0]?.Gateway ?? null
  }

  /** Whether engine images can be built: the base image is there, or can be pulled. @throws ContainerError */
  canBuild(): Promise<boolean> {
    return this.#engine.call('look for the base image', { ms: SLOW_MS }, (docker, abortSignal) =>
      canBuild(docker, this.#options.baseImage, abortSignal),
    )
  }

  /** Docker knows a container's network by its id: one that was made anew is another one to it. */
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
      docker.getImage(name).inspect().catch(ignoring(404)),
    )
    if (found) return { name, id: found.Id }
    throw new ContainerError('no_image', `there is no image ${name}`)
  }

  /** The container by its name, whoever has made it; undefined when there is none, or it is being removed. */
  async #find(agentId: string, signal: AbortSignal | undefined): Promise<ContainerInspectInfo | undefined> {
    const found = await this.#engine.call('inspect container', { signal }, (docker, abortSignal) =>
      docker.getContainer(nameOf(agentId)).inspect({ abortSignal }).catch(ignoring(404)),
    )
    return found?.State.Status === 'removing' ? undefined : found
  }

  async #own(agentId: string, signal: AbortSignal | undefined): Promise<ContainerInspectInfo | undefined> {
    const found = await this.#find(agentId, signal)
    return found?.Config.Labels?.[INSTANCE_LABEL] === this.#options.instance ? found : undefined
  }

  async #existing(agentId: string, signal: AbortSignal | undefined): Promise<ContainerInspectInfo> {
    const found = await this.#own(agentId, signal)
    if (found) return found
    throw new ContainerError('not_found', `there is no container of ${agentId}`)
  }

  /** Removes a container, running or not, and waits until it is gone: another call may be at it already (409). */
  async #removeContainer(id: string, signal: AbortSignal | undefined): Promise<void> {
    await this.#engine.call('remove container', { ms: SLOW_MS, signal }, async (docker, abortSignal) => {
      const container = docker.getContainer(id)
      while ((await container.remove({ force: true }).catch(ignoring(404, 409))) === undefined) {
        const left = await container.inspect({ abortSignal }).catch(ignoring(404))
        if (!left) return
        await sleep(POLL_MS, undefined, { signal: abortSignal })
      }
    })
  }

  /** The agents that have a volume. */
  async #volumes(signal: AbortSignal | undefined): Promise<string[]> {
    const { Volumes } = await this.#engine.call('list volumes', { signal }, (docker, abortSignal) =>
      docker.listVolumes({ filters: ownFilter(this.#options.instance), abortSignal }),
    )
    return (Volumes ?? []).flatMap(({ Labels }) => Labels?.[AGENT_LABEL] ?? [])
  }
}

const belongsToOthers = (what: string, agentId: string) =>
  new ContainerError('internal', `the ${what} ${nameOf(agentId)} belongs to somebody else`)

/** One that the engine could not remove before it died is of no use any more. */
const isWhole = (found: ContainerInspectInfo) => !found.State.Dead

const endpointOf = ({ Name, NetworkSettings }: ContainerInspectInfo) =>
  NetworkSettings.Networks[Name.replace(/^\//, '')]

/** The agent's own address, which it has from its making on. */
const addressOf = (found: ContainerInspectInfo): string | undefined =>
  endpointOf(found)?.IPAMConfig?.IPv4Address

/** The library would put all of it into the address of the request as well. */
function inBody(
  name: string,
  _body: ContainerCreateOptions,
  abortSignal: AbortSignal,
): ContainerCreateOptions {
  return { _query: { name }, _body, abortSignal } as ContainerCreateOptions
}

function toSandbox(found: ContainerInspectInfo): Sandbox {
  const { Status, ExitCode, OOMKilled, StartedAt } = found.State
  const { [AGENT_LABEL]: agentId = '', [VERSION_LABEL]: engineVersion = '' } = found.Config.Labels
  const state = Status === 'created' ? 'created' : /^(exited|dead)$/.test(Status) ? 'exited' : 'running'
  const address = addressOf(found)
  return {
    agentId,
    state,
    engineVersion,
    address: state === 'running' && address ? `${address}:${AGENTD_PORT}` : null,
    exitCode: state === 'exited' ? ExitCode : null,
    oomKilled: state === 'exited' && OOMKilled,
    startedAt: StartedAt === NEVER ? null : StartedAt,
  }
}
