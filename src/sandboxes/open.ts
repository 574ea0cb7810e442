/** Chooses the runtime for agents. */
import { lookup } from 'node:dns/promises'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, isIP } from 'node:net'
import { join } from 'node:path'
import { askAgentProxy, loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import { type Config, secretFiles } from '../config.ts'
import { ConfigError, SandboxError } from '../errors.ts'
import { reserveSetting } from '../lib/disk.ts'
import type { Logger } from '../log.ts'
import { DockerRuntime } from './docker.ts'
import { Cluster } from './kubernetes/cluster.ts'
import { KubernetesRuntime } from './kubernetes.ts'
import type { Owner } from './owner.ts'
import type { SandboxDriver, SandboxRuntime } from './port.ts'
import { openProcessRuntime } from './process.ts'

const AGENTD_DIR = join(import.meta.dirname, '../../agentd')

/**
 * Opens the runtime that BERTH_RUNTIME names. `auto` chooses Docker if it can run agents now, and keeps its first
 * choice, because agents of one runtime cannot be found in the other.
 * @throws SandboxError if agents cannot run here as processes; its message says what to do.
 */
export async function openRuntime(config: Config, log: Logger, owner: Owner): Promise<SandboxRuntime> {
  if (config.BERTH_RUNTIME === 'kubernetes') {
    log.info({ runtime: 'kubernetes', why: 'BERTH_RUNTIME' }, 'agents run in Kubernetes')
    return createKubernetes(config, owner)
  }
  const docker = config.BERTH_RUNTIME === 'process' ? null : createDocker(config, owner)
  const { runtime, why } = docker
    ? await choose(config, docker)
    : { runtime: 'process', why: 'BERTH_RUNTIME' }
  if (docker && runtime === 'docker') {
    log.info({ runtime, why }, 'agents run in Docker')
    return docker
  }
  await docker?.close()
  return openProcessRuntime({
    why,
    dataDir: config.BERTH_DATA_DIR,
    agentsDir: config.BERTH_AGENTS_DIR,
    enginesDir: config.BERTH_ENGINES_DIR,
    agentdDir: AGENTD_DIR,
    secretFiles: secretFiles(),
    acceptsNoWall: config.BERTH_AGENTS_READ_KEYS === 'accept',
    reserveBytes: reserveSetting(config),
    log,
  })
}

function createDocker(config: Config, owner: Owner): DockerRuntime {
  return new DockerRuntime({
    host: config.DOCKER_HOST,
    owner,
    subnets: config.BERTH_AGENT_SUBNETS,
    egressPort: async () => (await askAgentProxy(loadAgentProxy(config))).egressPort,
    disksSocket: config.BERTH_DISKS_SOCKET,
    baseImage: config.BERTH_BASE_IMAGE,
    enginesDir: config.BERTH_ENGINES_DIR ?? join(config.BERTH_DATA_DIR, 'engines'),
  })
}

/** A cluster's network enforces a policy within seconds. */
const GUARD_SECONDS = 60

async function createKubernetes(config: Config, owner: Owner): Promise<KubernetesRuntime> {
  const namespace = config.BERTH_KUBERNETES_NAMESPACE
  const { BERTH_EGRESS_URL: egressUrl, BERTH_ENGINE_IMAGE: image } = config
  if (!egressUrl) throw new ConfigError('BERTH_EGRESS_URL has to be set: agents have no other way out')
  if (!image)
    throw new ConfigError('BERTH_ENGINE_IMAGE has to be set: agents of a cluster run only this image')
  return new KubernetesRuntime({
    cluster: new Cluster(config.BERTH_KUBERNETES_CONFIG, namespace),
    owner,
    versions: [...new Set(config.BERTH_ENGINE_VERSIONS)],
    pods: {
      image,
      template: config.BERTH_KUBERNETES_POD,
      requestPercent: config.BERTH_KUBERNETES_REQUEST_PERCENT,
      egressUrl: await withAddress(egressUrl),
      openNetwork: config.BERTH_KUBERNETES_OPEN_NETWORK,
      guardSeconds: GUARD_SECONDS,
    },
    proxy: { namespace, ...config.BERTH_KUBERNETES_PROXY },
    storageClass: config.BERTH_KUBERNETES_STORAGE_CLASS,
  })
}

/** Replaces the host name in a URL with its address, because agents cannot resolve the name. @throws SandboxError */
async function withAddress(text: string): Promise<string> {
  const url = new URL(text)
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) return text
  try {
    const { address, family } = await lookup(url.hostname)
    url.hostname = family === 6 ? `[${address}]` : address
    return url.origin
  } catch (error) {
    throw new SandboxError('unreachable', `BERTH_EGRESS_URL: the address of ${url.hostname} was not found`, {
      cause: error,
    })
  }
}

const recordOf = (config: Config) => join(config.BERTH_DATA_DIR, 'runtime')

/** The runtime in the settings, or the one chosen at an earlier start; undefined before the first start. */
export async function chosenDriver(config: Config): Promise<SandboxDriver | undefined> {
  if (config.BERTH_RUNTIME !== 'auto') return config.BERTH_RUNTIME
  const chosen = (await readFile(recordOf(config), 'utf8').catch(() => '')).trim()
  return chosen === 'docker' || chosen === 'process' ? chosen : undefined
}

async function choose(
  config: Config,
  docker: DockerRuntime,
): Promise<{ runtime: SandboxDriver; why: string }> {
  if (config.BERTH_RUNTIME === 'docker') return { runtime: 'docker', why: 'BERTH_RUNTIME' }
  const record = recordOf(config)
  const before = await chosenDriver(config)
  if (before) return { runtime: before, why: `as before: ${record}` }
  const obstacle = await whyNotDocker(config, docker)
  const runtime = obstacle ? 'process' : 'docker'
  await writeFile(record, `${runtime}\n`)
  return { runtime, why: obstacle ?? 'Docker responds, and has an image for agents or can build one' }
}

/** Why agents cannot run in Docker now; null if they can. */
async function whyNotDocker(config: Config, docker: DockerRuntime): Promise<string | null> {
  try {
    // The agent proxy reaches agents through their bridges, which must be on this machine unless the agent proxy is
    // elsewhere.
    if (!config.BERTH_AGENT_PROXY_URL && !(await isLocal(docker)))
      return "Docker's networks are not on this machine (rootless, or in a virtual machine)"
    if ((await docker.engines()).length > 0 || (await docker.canBuild())) return null
    return `there is no image for agents, and its base ${config.BERTH_BASE_IMAGE} can neither be found nor pulled`
  } catch (error) {
    return (error as Error).message
  }
}

/**
 * True if the address of Docker's own bridge belongs to this machine. An idle bridge is down and missing from the list
 * of interfaces.
 */
async function isLocal(docker: DockerRuntime): Promise<boolean> {
  const gateway = await docker.defaultGateway()
  if (gateway === null) return true
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen({ host: gateway, port: 0 }, () => server.close(() => resolve(true)))
  })
}
