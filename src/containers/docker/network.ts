/**
 * The network of an agent: an internal bridge of its own. The host has the gateway's address on it, whether the
 * agent runs or not, and the egress proxy listens there; nothing else is routed out.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { NetworkInspectInfo } from 'dockerode'
import { ContainerError } from '../port.ts'
import { type DockerEngine, SLOW_MS } from './engine.ts'
import { ignoring, reasonOf, statusOf } from './errors.ts'
import { INSTANCE_LABEL, labelsOf, nameOf } from './names.ts'
import { freeSubnet, type Subnet, subnetOf } from './subnets.ts'

/** What another one makes at this moment is in no list yet, and taken all the same. */
const TRIES = 50
const PAUSE_MS = 100
const TAKEN = /overlap|already exists|same bridge name|already in use/i

/** Linux allows 15 characters. It locks as well: of two bridges with one name the engine refuses the second. */
const bridgeOf = (agentId: string) => `bth-${agentId}`

/** An agent's network, and Docker's id of it. */
export type AgentNetwork = Subnet & { id: string }

interface Options {
  instance: string
  agentId: string
  signal: AbortSignal | undefined
}

/**
 * The agent's network; made where it is not there.
 * @param options.address the agent's, when its container has one already: it gets the same network again.
 * @throws ContainerError `internal` when BERTH_AGENT_SUBNETS has no network left, or not this one any more.
 */
export async function ensureNetwork(
  engine: DockerEngine,
  options: Options & { pool: string; address?: string | undefined },
): Promise<AgentNetwork> {
  const { instance, agentId, pool, address, signal } = options
  for (let tries = 0; tries < TRIES; tries++) {
    const networks = await engine.call('list networks', { signal }, (docker, abortSignal) =>
      docker.listNetworks({ abortSignal }),
    )
    const own = networks.find((network) => network.Name === nameOf(agentId))
    if (own) return checkOwn(own, instance)
    const taken = networks.flatMap(subnetsOf)
    const chosen = address ? subnetOf(address) : freeSubnet(pool, taken, agentId)
    if (!chosen)
      throw new ContainerError(
        'internal',
        `BERTH_AGENT_SUBNETS (${pool}) is used up: give it a larger network`,
      )
    const id = await tryToMake(engine, options, chosen)
    if (id) return { ...chosen, id }
    await sleep(PAUSE_MS * (0.5 + Math.random()), undefined, { signal })
  }
  const wanted = address ? subnetOf(address).subnet : pool
  throw new ContainerError('internal', `no network could be made in ${wanted}: something else has it`)
}

/** Makes the network and resolves to its id; undefined when its addresses or its name were taken meanwhile. */
async function tryToMake(
  engine: DockerEngine,
  options: Options,
  chosen: Subnet,
): Promise<string | undefined> {
  const { instance, agentId, signal } = options
  try {
    const { id } = await engine.call('create network', { ms: SLOW_MS, signal }, (docker, abortSignal) =>
      docker.createNetwork({
        Name: nameOf(agentId),
        CheckDuplicate: true,
        Driver: 'bridge',
        Internal: true,
        IPAM: { Driver: 'default', Config: [{ Subnet: chosen.subnet, Gateway: chosen.gateway }] },
        Options: { 'com.docker.network.bridge.name': bridgeOf(agentId) },
        Labels: labelsOf(instance, agentId),
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

/** Removes the agent's network, and cuts off whoever an operator has joined to it. */
export async function removeNetwork(
  engine: DockerEngine,
  { instance, agentId, signal }: Options,
): Promise<void> {
  const networks = await engine.call('list networks', { signal }, (docker, abortSignal) =>
    docker.listNetworks({ filters: { label: [`${INSTANCE_LABEL}=${instance}`] }, abortSignal }),
  )
  for (const { Id, Name } of networks) {
    if (Name !== nameOf(agentId)) continue
    const members = await engine.call('inspect network', { signal }, async (docker) => {
      const found: NetworkInspectInfo | undefined = await docker.getNetwork(Id).inspect().catch(ignoring(404))
      return Object.keys(found?.Containers ?? {})
    })
    await engine.call('remove network', { ms: SLOW_MS, signal }, async (docker, abortSignal) => {
      const network = docker.getNetwork(Id)
      for (const Container of members) {
        await network.disconnect({ Container, Force: true, abortSignal }).catch(ignoring(404))
      }
      await network.remove({ abortSignal }).catch(ignoring(404))
    })
  }
}

function checkOwn(network: NetworkInspectInfo, instance: string): AgentNetwork {
  const subnet = subnetsOf(network)[0]
  if (network.Labels?.[INSTANCE_LABEL] !== instance || !subnet)
    throw new ContainerError('internal', `the network ${network.Name} belongs to somebody else`)
  return { ...subnetOf(subnet.split('/')[0] ?? ''), id: network.Id }
}

const subnetsOf = (network: NetworkInspectInfo): string[] =>
  network.IPAM?.Config?.flatMap((config) => config.Subnet ?? []) ?? []
