/** Host nodes: nodes that have the content of a CID, according to the client. */
import * as dns from 'node:dns/promises'
import { isIP } from 'node:net'
import { type Multiaddr, multiaddr } from '@multiformats/multiaddr'
import { base58btc } from 'multiformats/bases/base58'
import { CID } from 'multiformats/cid'
import * as Digest from 'multiformats/hashes/digest'
import { badRequest } from '../errors.ts'
import { isPrivateAddress } from '../lib/net/ip-address.ts'
import { orAborted } from '../lib/signals.ts'

/** Maximum host nodes in a request: more than a node needs, because an ordinary Kubo lists about twenty addresses. */
export const MAX_HOST_NODES = 100
/** Maximum number that is dialled: the first of those that can be. */
export const DIALLED_HOST_NODES = 20

const LIBP2P_KEY = 0x72
const HOSTS = ['ip4', 'ip6', 'dns', 'dns4', 'dns6', 'dnsaddr']
const DIALABLE = [...HOSTS, 'p2p']
const LOOKUP_MS = 5000
/** The maximum depth of nested `dnsaddr` records, and how many records are used. */
const DNSADDR_DEPTH = 3
const DNSADDR_RESULTS = 16

/**
 * Parses one host node: a peer id (`12D3Koo…`, `Qm…`, `k51…`), as `ipfs id` reports it, or a multiaddr that ends in
 * `/p2p/<peer id>`. Returns the multiaddr.
 * @throws ApiError 400 naming `field`; also for a private address unless those are allowed.
 */
export function parseHostNode(text: string, field: string, allowPrivate: boolean): string {
  const address = readMultiaddr(text.startsWith('/') ? text : `/p2p/${text}`, field)
  const parts = address.getComponents()
  const peer = parts.at(-1)
  if (peer?.name !== 'p2p' || !isPeerId(peer.value ?? '')) {
    throw badRequest(`${field}: must be a peer id, or a multiaddr that ends in /p2p/<peer id>`)
  }
  const host = parts[0]
  if (!host || !DIALABLE.includes(host.name)) throw badRequest(`${field}: cannot be dialled over a network`)
  if (!hasOneHost(address)) throw badRequest(`${field}: must name a single host`)
  if (!allowPrivate && hasPrivateHost(address)) throw privateAddress(field)
  return address.toString()
}

const privateAddress = (field: string) => badRequest(`${field}: private addresses are not allowed`)

function hasPrivateHost(address: Multiaddr): boolean {
  const host = address.getComponents()[0]?.value ?? ''
  return isIP(host) !== 0 && isPrivateAddress(host)
}

/**
 * Checks the host nodes of a request, in the format of `ipfs id`, which also lists a node's local addresses. Private
 * addresses are not dialled; they are accepted if the list has another address of the same peer.
 * @throws ApiError 400 naming the first invalid entry.
 */
export function checkHostNodes(nodes: string[], field: string, allowPrivate: boolean): void {
  const addresses = nodes.map((node, i) => parseHostNode(node, `${field}[${i}]`, true))
  const peerOf = (address: string) => address.slice(address.lastIndexOf('/') + 1)
  const isAllowed = (node: string) => allowPrivate || !hasPrivateHost(readMultiaddr(node, field))
  const reachable = new Set(addresses.filter(isAllowed).map(peerOf))
  const refused = addresses.findIndex((address) => !reachable.has(peerOf(address)))
  if (refused >= 0) throw privateAddress(`${field}[${refused}]`)
}

/** A resolver of names: `node:dns/promises`, or an object with the same methods. */
export interface NameResolver {
  lookup(name: string, options: { all: true; family: number }): Promise<{ address: string; family: number }[]>
  resolveTxt(name: string): Promise<string[][]>
}

/**
 * Makes host nodes dialable: resolves names, and drops those that lead to private addresses unless allowed, because the
 * dialling node would not check. This includes `dnsaddr`
 * (https://github.com/multiformats/multiaddr/blob/master/protocols/DNSADDR.md). Names that do not resolve within 5 s
 * are dropped.
 */
export async function resolveHostNodes(
  nodes: string[],
  allowPrivate: boolean,
  resolver: NameResolver = dns,
): Promise<string[]> {
  const resolved = await Promise.all(
    nodes.map((node) => {
      const look = { allowPrivate, resolver, left: DNSADDR_RESULTS }
      const results = resolveHostNode(multiaddr(node), look, 0)
      return orAborted(results, AbortSignal.timeout(LOOKUP_MS)).catch(() => [])
    }),
  )
  return resolved.flat()
}

/** `left` is how many more `dnsaddr` records may be used, over all levels: records could name more and more names. */
interface Look {
  allowPrivate: boolean
  resolver: NameResolver
  left: number
}

async function resolveHostNode(address: Multiaddr, look: Look, depth: number): Promise<string[]> {
  const { allowPrivate, resolver } = look
  const [host] = address.getComponents()
  if (!host?.value || !DIALABLE.includes(host.name) || !hasOneHost(address)) return []
  if (host.name === 'p2p') return [`${address}`]
  if (host.name === 'dnsaddr') return resolveDnsaddr(address, host.value, look, depth)
  if (isIP(host.value)) return allowPrivate || !isPrivateAddress(host.value) ? [`${address}`] : []
  const family = host.name === 'dns4' ? 4 : host.name === 'dns6' ? 6 : 0
  const found = await resolver.lookup(host.value, { all: true, family })
  const tail = tailOf(address)
  return found
    .filter(({ address: ip }) => allowPrivate || !isPrivateAddress(ip))
    .map(({ address: ip, family: version }) => `/ip${version}/${ip}${tail}`)
}

/** The addresses in the TXT records of `_dnsaddr.<name>` that have the same suffix as the `dnsaddr` itself. */
async function resolveDnsaddr(
  address: Multiaddr,
  name: string,
  look: Look,
  depth: number,
): Promise<string[]> {
  if (depth >= DNSADDR_DEPTH) return []
  const tail = tailOf(address)
  const records = await look.resolver.resolveTxt(`_dnsaddr.${name}`)
  const entries = records
    .map((parts) => parts.join(''))
    .filter((text) => text.startsWith('dnsaddr=/') && text.endsWith(tail))
    .slice(0, look.left)
  look.left -= entries.length
  const resolved = await Promise.all(
    entries.map(async (text) => {
      try {
        const entry = multiaddr(text.slice('dnsaddr='.length))
        return await resolveHostNode(entry, look, depth + 1)
      } catch {
        return [] // one invalid record does not spoil the others
      }
    }),
  )
  return resolved.flat().slice(0, DNSADDR_RESULTS)
}

/** True for an address without a host after the first component: a node could dial the second host. */
function hasOneHost(address: Multiaddr): boolean {
  const [, ...rest] = address.getComponents()
  return !rest.some(({ name }) => HOSTS.includes(name))
}

const tailOf = (address: Multiaddr): string =>
  address
    .getComponents()
    .slice(1)
    .map(({ name, value }) => (value === undefined ? `/${name}` : `/${name}/${value}`))
    .join('')

function readMultiaddr(text: string, field: string): Multiaddr {
  try {
    return multiaddr(text)
  } catch (error) {
    throw badRequest(`${field}: malformed: ${(error as Error).message}`)
  }
}

/** A peer id is a multihash in base58, or a CID of a libp2p key (libp2p peer ids spec). */
function isPeerId(text: string): boolean {
  try {
    if (/^(1|Qm)/.test(text)) return Digest.decode(base58btc.decode(`z${text}`)).digest.length > 0
    return CID.parse(text).code === LIBP2P_KEY
  } catch {
    return false
  }
}
