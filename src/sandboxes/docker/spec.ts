/** The options of an agent's container. */
import type { ContainerCreateOptions } from 'dockerode'
import { environmentOf, HOME, tmpBytesOf, UID } from '../in-image.ts'
import { labelsOf, nameOf, SPEC_LABEL, VERSION_LABEL } from '../names.ts'
import { hashOf, type SandboxSpec } from '../port.ts'
import type { Subnet } from './network.ts'

/** At most what Docker itself may open on any usual machine, because it cannot grant more. */
const OPEN_FILES = 16_384
const STOP_SECONDS = 10

export interface ContainerOptions {
  spec: SandboxSpec
  instance: string
  /** The engine version's image. */
  image: { name: string; id: string }
  network: Subnet
  egressPort: number
  /** True if the container runs under gVisor. */
  runsc: boolean
  /** True if the file system enforces the limit of the home. */
  hardLimit: boolean
}

/** The name and the body of Docker's create call. A label contains their hash. */
export function containerOptions(options: ContainerOptions): {
  name: string
  hash: string
  body: ContainerCreateOptions
} {
  const { spec, instance, image, network, egressPort, hardLimit } = options
  const name = nameOf(spec.agentId)
  const env = environmentOf(spec, { proxy: `http://${network.gateway}:${egressPort}`, hardLimit })
  const body: ContainerCreateOptions = {
    Image: image.name,
    Hostname: spec.hostname,
    User: `${UID}:${UID}`,
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    StopSignal: 'SIGTERM',
    StopTimeout: STOP_SECONDS,
    HostConfig: hostConfig(options),
    NetworkingConfig: {
      EndpointsConfig: { [name]: { IPAMConfig: { IPv4Address: network.address } } },
    },
  }
  // An image that was rebuilt under the same name counts as another image.
  const hash = hashOf({ body, image: image.id })
  const Labels = {
    ...labelsOf(instance, spec.agentId),
    [VERSION_LABEL]: spec.engineVersion,
    [SPEC_LABEL]: hash,
  }
  return { name, hash, body: { ...body, Labels } }
}

/** The isolation of an agent. Seccomp and masked paths keep Docker's defaults. */
function hostConfig({ spec, network, runsc }: ContainerOptions): ContainerCreateOptions['HostConfig'] {
  const name = nameOf(spec.agentId)
  const { memoryBytes, cpus, pids } = spec.limits
  const { diskBytes } = spec.agentd
  return {
    NetworkMode: name,
    // Names resolve at the egress proxy. Without this setting, old engines ask the host's own resolver for agents.
    Dns: [network.address],
    DnsOptions: ['timeout:1', 'attempts:1'],
    Mounts: [{ Type: 'volume', Source: name, Target: HOME }],
    ReadonlyRootfs: true,
    Tmpfs: { '/tmp': `rw,nosuid,nodev,mode=1777,size=${tmpBytesOf(spec.limits)}` },
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges:true'],
    Privileged: false,
    IpcMode: 'private',
    Memory: memoryBytes,
    MemorySwap: memoryBytes,
    NanoCpus: Math.round(cpus * 1e9),
    PidsLimit: pids,
    // When memory runs out, the kernel kills agents before the database.
    OomScoreAdj: 500,
    Ulimits: [
      { Name: 'nofile', Soft: OPEN_FILES, Hard: OPEN_FILES },
      { Name: 'core', Soft: 0, Hard: 0 },
      { Name: 'fsize', Soft: diskBytes, Hard: diskBytes },
    ],
    RestartPolicy: { Name: 'no' },
    LogConfig: { Type: 'json-file', Config: { 'max-size': '5m', 'max-file': '2' } },
    ...(runsc && { Runtime: 'runsc' }),
  }
}
