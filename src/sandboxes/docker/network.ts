/**
 * An agent's network: its own internal bridge. The host always has the gateway's address on it, where the egress proxy
 * listens. Nothing else is routed out.
 */

import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { NetworkInspectInfo } from 'dockerode'
import { SandboxError } from '../../errors.ts'
import { ignoreStatus } from '../../openclaw/docker-build.ts'
import { belongsToOthers, INSTANCE_LABEL, isLabelled, LABELLED, labelsOf, nameOf } from '../names.ts'
import type { Owner } from '../owner.ts'
import { type DockerEngine, reasonOf, SLOW_MS, statusOf } from './engine.ts'

/**
 * Attempts to find a free subnet: a subnet that another process is just taking is in no list yet. Also the attempts to
 * remove a network, which a container that leaves stays in for a moment.
 */
const TRIES = 50
/** Lists without a free subnet until the pool counts as used up: a removed network stays listed for a moment. */
const FULL_LISTS = 5
const PAUSE_MS = 100
const TAKEN = /overlap|already exists|same bridge name|already in use/i

/** The option that names the bridge. It acts as a lock: the engine refuses a second bridge with the same name. */
const BRIDGE_NAME = 'com.docker.network.bridge.name'

export interface AgentNetwork extends Subnet {
  /** Docker's id. */
  id: string
  /** True if the label and the bridge are the ones that a new network would get. */
  current: boolean
}

interface Options {
  owner: Owner
  agentId: string
  signal: AbortSignal | undefined
}

/**
 * Returns the agent's network, and creates it if it does not exist.
 * @param options.address the agent's address, if its container already has one: it gets the same network again.
 * @throws SandboxError `internal` if BERTH_AGENT_SUBNETS has no network left, or the wanted one is taken.
 */
export async function ensureNetwork(
  engine: DockerEngine,
  options: Options & { pool: string; bridge: string; address?: string | undefined },
): Promise<AgentNetwork> {
  const { owner, agentId, pool, bridge, address, signal } = options
  for (let tries = 0, full = 0; tries < TRIES; tries++) {
    const networks = await engine.call('list networks', { signal }, (docker, abortSignal) =>
      docker.listNetworks({ abortSignal }),
    )
    const own = networks.find((network) => network.Name === nameOf(agentId))
    if (own) return checkOwn(own, owner, bridge)
    const taken = networks.flatMap(subnetsOf)
    const chosen = address ? subnetOf(address) : freeSubnet(pool, taken, agentId)
    if (!chosen && ++full === FULL_LISTS)
      throw new SandboxError('internal', `BERTH_AGENT_SUBNETS (${pool}) is used up: give it a larger network`)
    const id = chosen && (await tryToMake(engine, options, chosen))
    if (id) return { ...chosen, id, current: true }
    await sleep(PAUSE_MS * (0.5 + Math.random()), undefined, { signal })
  }
  const wanted = address ? subnetOf(address).subnet : pool
  throw new SandboxError('internal', `cannot create a network in ${wanted}: something else uses it`)
}

/** Creates the network and resolves to its id; undefined if its addresses or its name have been taken. */
async function tryToMake(
  engine: DockerEngine,
  options: Options & { bridge: string },
  chosen: Subnet,
): Promise<string | undefined> {
  const { owner, agentId, bridge, signal } = options
  try {
    const { id } = await engine.call('create network', { ms: SLOW_MS, signal }, (docker, abortSignal) =>
      docker.createNetwork({
        Name: nameOf(agentId),
        CheckDuplicate: true,
        Driver: 'bridge',
        Internal: true,
        IPAM: { Driver: 'default', Config: [{ Subnet: chosen.subnet, Gateway: chosen.gateway }] },
        Options: { [BRIDGE_NAME]: bridge },
        Labels: labelsOf(owner.instance, agentId),
        abortSignal,
      }),
    )
    return id
  } catch (error) {
    const cause = (error as Error).cause
    if (statusOf(cause) !== undefined && TAKEN.test(reasonOf(cause))) return undefined
    throw error
  }
}

/** Removes the agent's network, and disconnects any containers that an operator has joined to it. */
export async function removeNetwork(
  engine: DockerEngine,
  { owner, agentId, signal }: Options,
): Promise<void> {
  const networks = await engine.call('list networks', { signal }, (docker, abortSignal) =>
    docker.listNetworks({ filters: LABELLED, abortSignal }),
  )
  for (const { Id, Name, Labels } of networks) {
    if (Name !== nameOf(agentId) || !isLabelled(owner, Labels)) continue
    for (let tries = 1; ; tries++) {
      try {
        await emptyAndRemove(engine, Id, signal)
        break
      } catch (error) {
        // A container has just joined the network, or is still leaving it.
        if (tries === TRIES || statusOf((error as Error).cause) !== 403) throw error
        await sleep(PAUSE_MS, undefined, { signal })
      }
    }
  }
}

async function emptyAndRemove(
  engine: DockerEngine,
  id: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const members = await engine.call('inspect network', { signal }, async (docker) => {
    const found: NetworkInspectInfo | undefined = await docker
      .getNetwork(id)
      .inspect()
      .catch(ignoreStatus(404))
    return Object.keys(found?.Containers ?? {})
  })
  await engine.call('remove network', { ms: SLOW_MS, signal }, async (docker, abortSignal) => {
    const network = docker.getNetwork(id)
    for (const Container of members) {
      await network.disconnect({ Container, Force: true, abortSignal }).catch(ignoreStatus(404))
    }
    await network.remove({ abortSignal }).catch(ignoreStatus(404))
  })
}

function checkOwn(network: NetworkInspectInfo, owner: Owner, bridge: string): AgentNetwork {
  const subnet = subnetsOf(network)[0]
  if (!isLabelled(owner, network.Labels) || !subnet)
    throw belongsToOthers('network', network.Name, network.Labels)
  const current =
    network.Labels?.[INSTANCE_LABEL] === owner.instance && network.Options?.[BRIDGE_NAME] === bridge
  return { ...subnetOf(subnet.split('/')[0] ?? ''), id: network.Id, current }
}

const subnetsOf = (network: NetworkInspectInfo): string[] =>
  network.IPAM?.Config?.flatMap((config) => config.Subnet ?? []) ?? []

/**
 * An agent's network, 8 addresses of BERTH_AGENT_SUBNETS: the first address belongs to the host, the second to the
 * agent.
 */
export interface Subnet {
  /** For example `10.231.0.8/29`. */
  subnet: string
  gateway: string
  address: string
}

const SIZE = 8
const PREFIX = 29

/**
 * A network of `pool` that overlaps no network of `taken`. Each agent's search starts at its own position, so that
 * concurrent workers rarely choose the same network, and an agent whose network is recreated gets the same one.
 * @param pool for example `10.231.0.0/16`; @param taken networks in the same form; IPv6 networks are ignored.
 * @returns undefined if none is left.
 */
export function freeSubnet(pool: string, taken: Iterable<string>, agentId: string): Subnet | undefined {
  const { first, size } = parse(pool) ?? { first: 0, size: 0 }
  const count = size / SIZE
  const used = new Set<number>()
  for (const network of taken) {
    const range = parse(network)
    if (!range) continue
    const from = Math.max(Math.floor((range.first - first) / SIZE), 0)
    const to = Math.min(Math.floor((range.first + range.size - 1 - first) / SIZE), count - 1)
    for (let slot = from; slot <= to; slot++) used.add(slot)
  }
  const begin = createHash('sha256').update(agentId).digest().readUInt32BE()
  for (let step = 0; step < count && used.size < count; step++) {
    const slot = (begin + step) % count
    if (!used.has(slot)) return subnetAt(first + slot * SIZE)
  }
  return undefined
}

/** The network that contains an agent's address. */
export function subnetOf(address: string): Subnet {
  const number = toNumber(address)
  return subnetAt(number - (number % SIZE))
}

function subnetAt(first: number): Subnet {
  return {
    subnet: `${toText(first)}/${PREFIX}`,
    gateway: toText(first + 1),
    address: toText(first + 2),
  }
}

function parse(network: string): { first: number; size: number } | undefined {
  const [address = '', bits] = network.split('/')
  if (!/^\d+(\.\d+){3}$/.test(address)) return undefined
  const size = 2 ** (32 - Number(bits ?? 32))
  const number = toNumber(address)
  return { first: number - (number % size), size }
}

const toNumber = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)

const toText = (number: number) =>
  [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.')
