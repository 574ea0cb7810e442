/** Addresses at which the two sides can be dialled: our node's for clients (delegates), and theirs for us (origins). */
import { isIP } from 'node:net'
import { ApiError } from '../../errors.ts'
import { text } from '../../http/shapes.ts'
import { isPrivateAddress } from '../../lib/net/ip-address.ts'
import { DIALLED_HOST_NODES, parseHostNode } from '../host-nodes.ts'

const MAX_DELEGATES = 20

/**
 * Picks delegates from a node's addresses: at most 20, and local addresses only if there are no others, as the
 * specification asks. A node that others cannot dial has none. The specification wants at least one. But clients
 * connect to each delegate before they continue, and dialling an unreachable address takes long and fails.
 */
export function pickDelegates(addresses: string[]): string[] {
  // Kubo's client rejects a response with a delegate that does not name its peer.
  const named = [...new Set(addresses)].filter((address) => /\/p2p\/[^/]+$/.test(address))
  const open = named.filter((address) => !isLocal(address))
  return (open.length > 0 ? open : named).slice(0, MAX_DELEGATES)
}

function isLocal(address: string): boolean {
  const [, protocol, host = ''] = address.split('/')
  return (protocol === 'ip4' || protocol === 'ip6') && isIP(host) !== 0 && isPrivateAddress(host)
}

const address = text(1024)

/**
 * The first {@link DIALLED_HOST_NODES} origins that may be dialled, as multiaddrs. Others are left out instead of
 * rejected: a node lists all of its addresses, including local ones, and dialling origins is best effort.
 */
export function readOrigins(origins: string[], allowPrivate: boolean): string[] {
  const read = origins.flatMap((origin) => {
    if (!address.safeParse(origin).success) return []
    try {
      return [parseHostNode(origin, 'origins', allowPrivate)]
    } catch (error) {
      if (error instanceof ApiError) return []
      throw error
    }
  })
  return read.slice(0, DIALLED_HOST_NODES)
}
