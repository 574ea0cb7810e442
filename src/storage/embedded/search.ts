import { setTimeout as sleep } from 'node:timers/promises'
import type { CID } from 'multiformats/cid'
import { z } from 'zod'
import { readWhole } from '../../lib/read.ts'
import { within } from '../../lib/signals.ts'
import { trimSlashes } from '../../lib/slashes.ts'
import type { BlockNetwork } from './network.ts'

const DIAL_MS = 10_000
/** Maximum providers from routing that are dialled per round. */
const PROVIDERS = 8

export interface SearchOptions {
  network: BlockNetwork
  /** Host nodes; see `PinOptions.origins`. */
  origins: string[]
  routingUrl: string | null
  /** The search is repeated at this interval, as long as `isIdle` reports that nothing arrives. */
  repeatMs: number
  isIdle: () => boolean
  /**
   * Called after a first round that reached none of the given host nodes, if routing knows nobody else: with the error
   * of each.
   */
  onUnreachable: (failures: Map<string, unknown>) => void
  signal: AbortSignal
}

/**
 * Connects to nodes that may have a DAG, until the signal fires: first the host nodes, then the providers from
 * delegated routing. Bitswap asks every connected peer by itself. Never rejects.
 */
export async function search(cid: CID, options: SearchOptions): Promise<void> {
  const { origins, signal } = options
  for (let first = true; !signal.aborted; first = false) {
    if (first || options.isIdle()) {
      const failures = new Map<string, unknown>()
      const onFailure = (origin: string) => (error: unknown) => failures.set(origin, error)
      const answers = await Promise.all(
        origins.map((origin) => dialOrigin(origin, options, onFailure(origin))),
      )
      answers.push(await dialProviders(cid, options))
      const isNobody = answers.every((answer) => answer === 'none')
      if (first && origins.length > 0 && isNobody && !signal.aborted) options.onUnreachable(failures)
    }
    await sleep(options.repeatMs, undefined, { signal, ref: false }).catch(() => {})
  }
}

/** `unknown` if routing did not respond: there may be providers. */
type DialResult = 'found' | 'none' | 'unknown'

/** Dials a host node; one that is given only by its id is looked up if it is not known yet. */
async function dialOrigin(
  origin: string,
  { network, routingUrl, signal }: SearchOptions,
  onFailure: (error: unknown) => void,
): Promise<DialResult> {
  if (await reaches(network, [origin], signal, onFailure)) return 'found'
  const peerId = /^\/p2p\/([^/]+)$/.exec(origin)?.[1]
  if (!peerId || routingUrl === null) return 'none'
  const peers = await findPeer(routingUrl, peerId, signal).catch(() => null)
  if (!peers) return 'unknown'
  return (await reaches(network, peers[0] ?? [], signal, onFailure)) ? 'found' : 'none'
}

/** Dials the providers from routing. A provider that is not a host node counts as found, reached or not. */
async function dialProviders(
  cid: CID,
  { network, origins, routingUrl, signal }: SearchOptions,
): Promise<DialResult> {
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

async function reaches(
  network: BlockNetwork,
  addresses: string[],
  signal: AbortSignal,
  onFailure?: (error: unknown) => void,
): Promise<boolean> {
  try {
    await network.dial(addresses, within(DIAL_MS, signal))
    return true
  } catch (error) {
    onFailure?.(error)
    return false
  }
}

// Delegated HTTP routing, https://specs.ipfs.tech/routing/http-routing-v1/: a CID's providers, a peer's addresses.

const TIMEOUT_MS = 10_000
const ANSWER_LIMIT = 1024 * 1024
const PEER_LIMIT = 20
const ADDRESS_LIMIT = 16

const peer = z.object({ ID: z.string(), Addrs: z.array(z.string()).nullish() })
const providersAnswer = z.object({ Providers: z.array(z.unknown()).nullish() })
const peersAnswer = z.object({ Peers: z.array(z.unknown()).nullish() })

/** Addresses of one peer that TCP can dial, each ending in `/p2p/<peer id>`. */
type PeerAddresses = string[]

/** Peers that claim to have a CID. Rejects if the service does not respond. */
async function findProviders(routingUrl: string, cid: CID, signal: AbortSignal): Promise<PeerAddresses[]> {
  const answer = providersAnswer.parse(await ask(`${base(routingUrl)}/providers/${cid.toV1()}`, signal))
  return peerAddresses(answer.Providers)
}

/** Addresses of a peer. Rejects if the service does not respond. */
async function findPeer(routingUrl: string, peerId: string, signal: AbortSignal): Promise<PeerAddresses[]> {
  const answer = peersAnswer.parse(await ask(`${base(routingUrl)}/peers/${peerId}`, signal))
  return peerAddresses(answer.Peers)
}

const base = (routingUrl: string): string =>
  `${trimSlashes(routingUrl).replace(/\/routing\/v1$/, '')}/routing/v1`

async function ask(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    signal: within(TIMEOUT_MS, signal),
  })
  if (response.status === 404) {
    await response.body?.cancel()
    return {} // nobody is known
  }
  if (!response.ok || !response.body) {
    await response.body?.cancel()
    throw new Error(`Delegated routing answered ${response.status}`)
  }
  const tooLarge = () => new Error(`Delegated routing answered more than ${ANSWER_LIMIT} bytes`)
  return JSON.parse(`${await readWhole(response.body, ANSWER_LIMIT, tooLarge)}`)
}

function peerAddresses(records: unknown[] | null | undefined): PeerAddresses[] {
  const found: PeerAddresses[] = []
  for (const record of records ?? []) {
    const { success, data } = peer.safeParse(record)
    const dialable = success ? (data.Addrs ?? []).filter(isPlainTcp).slice(0, ADDRESS_LIMIT) : []
    if (data && dialable.length > 0)
      found.push(dialable.map((address) => `${address.replace(/\/p2p\/[^/]+$/, '')}/p2p/${data.ID}`))
    if (found.length === PEER_LIMIT) break
  }
  return found
}

/** `/<ip>/…/tcp/<port>` and nothing above it except the peer id. */
const isPlainTcp = (address: string): boolean => /^\/ip[46]\/[^/]+\/tcp\/\d+(\/p2p\/[^/]+)?$/.test(address)
