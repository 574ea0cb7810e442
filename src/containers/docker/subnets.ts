/** Cutting agents' networks out of BERTH_AGENT_SUBNETS: 8 addresses each. */
import { createHash } from 'node:crypto'

/** An agent's network: the first address is the host's, the second the agent's. */
export interface Subnet {
  /** Like `10.231.0.8/29`. */
  subnet: string
  gateway: string
  address: string
}

const SIZE = 8
const PREFIX = 29

/**
 * A network of `pool` that overlaps none of `taken`. The search begins at a place of the agent's own, so that
 * workers that choose at once seldom choose the same, and an agent whose network is made anew gets it again.
 * @param pool like `10.231.0.0/16`; @param taken networks of the same form; those of IPv6 count for nothing.
 * @returns undefined when none is left.
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

/** The network in which an agent's address is. */
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
