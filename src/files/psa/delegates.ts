/** Delegates: the addresses at which a client's node may connect to the one that pins. */
import { isIP } from 'node:net'
import { isPrivateAddress } from '../../net/private-address.ts'

const MAX_DELEGATES = 20

/**
 * Picks delegates from a node's addresses: at most 20, and those of local networks only where there is no
 * other, as the specification asks. A node that others cannot dial has none. The specification wants at
 * least one, but clients connect to each before they go on, and to an address where nobody is that takes
 * long and ends in nothing.
 */
export function pickDelegates(addresses: string[]): string[] {
  // Kubo's client gives up on an answer with a delegate that does not name its peer.
  const named = [...new Set(addresses)].filter((address) => /\/p2p\/[^/]+$/.test(address))
  const open = named.filter((address) => !isLocal(address))
  return (open.length > 0 ? open : named).slice(0, MAX_DELEGATES)
}

function isLocal(address: string): boolean {
  const [, protocol, host = ''] = address.split('/')
  return (protocol === 'ip4' || protocol === 'ip6') && isIP(host) !== 0 && isPrivateAddress(host)
}
