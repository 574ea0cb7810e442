/** Host nodes: where a client says that the content of a CID can be had. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { type Multiaddr, multiaddr } from '@multiformats/multiaddr'
import { base58btc } from 'multiformats/bases/base58'
import { CID } from 'multiformats/cid'
import * as Digest from 'multiformats/hashes/digest'
import { badRequest } from '../errors.ts'
import { isPrivateAddress } from '../net/private-address.ts'

const LIBP2P_KEY = 0x72
const DIALABLE = ['ip4', 'ip6', 'dns', 'dns4', 'dns6', 'dnsaddr', 'p2p']
const LOOKUP_MS = 5000

/**
 * Reads one host node: a peer id (`12D3Koo…`, `Qm…`, `k51…`), as `ipfs id` reports it, or a multiaddr
 * that ends in `/p2p/<peer id>`. Returns the multiaddr.
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
  if (!allowPrivate && host.value && isIP(host.value) && isPrivateAddress(host.value)) {
    throw badRequest(`${field}: private addresses are not allowed`)
  }
  return address.toString()
}

/**
 * Makes host nodes dialable: names are resolved here, and those that lead to private addresses are
 * dropped unless allowed, because the node that dials would not ask. A `dnsaddr` is left to it.
 */
export async function resolveHostNodes(nodes: string[], allowPrivate: boolean): Promise<string[]> {
  const resolved = await Promise.all(nodes.map((node) => resolveHostNode(node, allowPrivate)))
  return resolved.flat()
}

async function resolveHostNode(node: string, allowPrivate: boolean): Promise<string[]> {
  const address = multiaddr(node)
  const [host, ...rest] = address.getComponents()
  if (!host?.value || !['dns', 'dns4', 'dns6'].includes(host.name)) return [node]
  const family = host.name === 'dns4' ? 4 : host.name === 'dns6' ? 6 : 0
  const found = await Promise.race([
    lookup(host.value, { all: true, family }).catch(() => []),
    new Promise<[]>((resolve) => setTimeout(resolve, LOOKUP_MS, []).unref()),
  ])
  const tail = rest
    .map(({ name, value }) => (value === undefined ? `/${name}` : `/${name}/${value}`))
    .join('')
  return found
    .filter(({ address: ip }) => allowPrivate || !isPrivateAddress(ip))
    .map(({ address: ip, family: version }) => `/ip${version}/${ip}${tail}`)
}

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
