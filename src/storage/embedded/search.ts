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
  /** Called after the first round when host nodes were named and nobody at all could be reached. */
  onUnreachable: () => void
  signal: AbortSignal
}

/**
 * Connects to whoever may have a DAG, until the signal fires: the host nodes first, then the
 * providers that delegated routing names. Bitswap asks every connected peer by itself. Never rejects.
 */
export async function search(cid: CID, options: SearchOptions): Promise<void> {
  const { origins, routingUrl, signal } = options
  for (let first = true; !signal.aborted; first = false) {
    if (first || options.isIdle()) {
      let reached = await countReached(origins.map((origin) => () => dialOrigin(origin, options)))
      if (routingUrl !== null) reached += await dialProviders(routingUrl, cid, options)
      if (first && origins.length > 0 && reached === 0 && !signal.aborted) options.onUnreachable()
    }
    await sleep(options.repeatMs, undefined, { signal, ref: false }).catch(() => {})
  }
}

/** Dials a host node; one that is named by its id only is looked up where it is not known already. */
async function dialOrigin(origin: string, { network, routingUrl, signal }: SearchOptions): Promise<void> {
  try {
    await dial(network, [origin], signal)
  } catch (error) {
    const peerId = /^\/p2p\/([^/]+)$/.exec(origin)?.[1]
    if (!peerId || routingUrl === null) throw error
    const [addresses = []] = await findPeer(routingUrl, peerId, signal)
    await dial(network, addresses, signal)
  }
}

async function dialProviders(
  routingUrl: string,
  cid: CID,
  { network, signal }: SearchOptions,
): Promise<number> {
  const providers = await findProviders(routingUrl, cid, signal).catch(() => [])
  return countReached(
    providers.slice(0, PROVIDERS).map((addresses) => () => dial(network, addresses, signal)),
  )
}

function dial(network: BlockNetwork, addresses: string[], signal: AbortSignal): Promise<void> {
  return network.dial(addresses, AbortSignal.any([signal, AbortSignal.timeout(DIAL_MS)]))
}

async function countReached(dials: (() => Promise<void>)[]): Promise<number> {
  const results = await Promise.allSettled(dials.map((dialOne) => dialOne()))
  return results.filter(({ status }) => status === 'fulfilled').length
}
