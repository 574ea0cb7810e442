/**
 * Delegated HTTP routing, https://specs.ipfs.tech/routing/http-routing-v1/: who provides a CID, and
 * where a peer is.
 */
import type { CID } from 'multiformats/cid'
import { z } from 'zod'

const TIMEOUT_MS = 10_000
const ANSWER_LIMIT = 1024 * 1024
const PEER_LIMIT = 20
const ADDRESS_LIMIT = 16

const peer = z.object({ ID: z.string(), Addrs: z.array(z.string()).nullish() })
const providersAnswer = z.object({ Providers: z.array(z.unknown()).nullish() })
const peersAnswer = z.object({ Peers: z.array(z.unknown()).nullish() })

/** Addresses of one peer that TCP can dial, each ending in `/p2p/<peer id>`. */
export type PeerAddresses = string[]

/** Peers that say they have a CID. Rejects when the service does not answer. */
export async function findProviders(
  routingUrl: string,
  cid: CID,
  signal: AbortSignal,
): Promise<PeerAddresses[]> {
  const answer = providersAnswer.parse(await ask(`${base(routingUrl)}/providers/${cid.toV1()}`, signal))
  return peerAddresses(answer.Providers)
}

/** Addresses of a peer. Rejects when the service does not answer. */
export async function findPeer(
  routingUrl: string,
  peerId: string,
  signal: AbortSignal,
): Promise<PeerAddresses[]> {
  const answer = peersAnswer.parse(await ask(`${base(routingUrl)}/peers/${peerId}`, signal))
  return peerAddresses(answer.Peers)
}

const base = (routingUrl: string): string =>
  `${routingUrl.replace(/\/+$/, '').replace(/\/routing\/v1$/, '')}/routing/v1`

async function ask(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  })
  if (response.status === 404) {
    await response.body?.cancel()
    return {} // nobody is known
  }
  if (!response.ok || !response.body) {
    await response.body?.cancel()
    throw new Error(`Delegated routing answered ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body) {
    length += chunk.length
    if (length > ANSWER_LIMIT) throw new Error(`Delegated routing answered more than ${ANSWER_LIMIT} bytes`)
    chunks.push(chunk)
  }
  return JSON.parse(Buffer.concat(chunks).toString())
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

/** `/<ip>/…/tcp/<port>` and nothing above it but the peer id. */
const isPlainTcp = (address: string): boolean => /^\/ip[46]\/[^/]+\/tcp\/\d+(\/p2p\/[^/]+)?$/.test(address)
