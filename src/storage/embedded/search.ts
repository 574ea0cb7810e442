import { setTimeout as sleep } from 'node:timers/promises'
import type { CID } from 'multiformats/cid'
import type { BlockNetwork } from './network.ts'
import { findPeer, findProviders } from './routing.ts'

const DIAL_MS = 10_000
/** Providers from routing that are dialled in one round. */
const PROVIDERS = 8

export interface SearchOptions {
  network: BlockNetwork
  /** Host nodes, see `PinOptions.origins`. */
  origins: string[]
  routingUrl: string | null
  /** The search is repeated at this interval, as long as `isIdle` says that nothing arrives. */
  repeatMs: number
  isIdle: () => boolean
  /** Called after a first round that reached none of the host nodes that were named, where routing knows nobody else. */
  onUnreachable: () => void
  signal: AbortSignal
}

/**
 * Connects to whoever may have a DAG, until the signal fires: the host nodes first, then the
 * providers that delegated routing names. Bitswap asks every connected peer by itself. Never rejects.
 */
export async function search(cid: CID, options: SearchOptions): Promise<void> {
  const { origins, signal } = options
  for (let first = true; !signal.aborted; first = false) {
    if (first || options.isIdle()) {
      const answers = await Promise.all(origins.map((origin) => dialOrigin(origin, options)))
      answers.push(await dialProviders(cid, options))
      const isNobody = answers.every((answer) => answer === 'none')
      if (first && origins.length > 0 && isNobody && !signal.aborted) options.onUnreachable()
    }
    await sleep(options.repeatMs, undefined, { signal, ref: false }).catch(() => {})
  }
}

/** `unknown` where routing did not answer: there may be somebody. */
type Answer = 'found' | 'none' | 'unknown'

/** Dials a host node; one that is named by its id only is looked up where it is not known already. */
async function dialOrigin(origin: string, { network, routingUrl, signal }: SearchOptions): Promise<Answer> {
  if (await reaches(network, [origin], signal)) return 'found'
  const peerId = /^\/p2p\/([^/]+)$/.exec(origin)?.[1]
  if (!peerId || routingUrl === null) return 'none'
  const peers = await findPeer(routingUrl, peerId, signal).catch(() => null)
  if (!peers) return 'unknown'
  return (await reaches(network, peers[0] ?? [], signal)) ? 'found' : 'none'
}

/** Dials the providers that routing names. One that is no host node counts as found, reached or not. */
async function dialProviders(
  cid: CID,
  { network, origins, routingUrl, signal }: SearchOptions,
): Promise<Answer> {
  if (routingUrl === null) return 'none'
  const providers = await findProviders(routingUrl, cid, signal).catch(() => null)
  if (!providers) return 'unknown'
  const dials = providers.slice(0, PROVIDERS).map((addresses) => reaches(network, addresses, signal))
  const isReached = (await Promise.all(dials)).includes(true)
  const hostNodes = new Set(origins.map(peerIdOf))
  const hasOthers = providers.some(([address = '']) => !hostNodes.has(peerIdOf(address)))
  return isReached || hasOthers ? 'found' : 'none'
}

const peerIdOf = (address: string): string => address.slice(address.lastIndexOf('/') + 1)

async function reaches(network: BlockNetwork, addresses: string[], signal: AbortSignal): Promise<boolean> {
  try {
    await network.dial(addresses, AbortSignal.any([signal, AbortSignal.timeout(DIAL_MS)]))
    return true
  } catch {
    return false
  }
}
