/**
 * The network side of the embedded node: bitswap over libp2p (TCP, Noise, Yamux), without DHT, mDNS or bootstrap
 * peers. Import it only dynamically: loading it costs time and memory that a process without retrievals can
 * save.
 */
import { privateKeyFromProtobuf } from '@libp2p/crypto/keys'
import { identify } from '@libp2p/identify'
import { noise } from '@libp2p/noise'
import { peerIdFromString } from '@libp2p/peer-id'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { type Multiaddr, multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import type { CID } from 'multiformats/cid'
import { isPrivateAddress } from '../../lib/net/ip-address.ts'
import { StorageError } from '../port.ts'
import { Bitswap } from './bitswap/bitswap.ts'
import type { NodeBlocks } from './place.ts'

const DIAL_TIMEOUT_MS = 10_000

export interface NetworkOptions {
  /** Multiaddrs to listen on; with none, the node only dials. */
  listen: string[]
  /** The node's key as a libp2p protobuf; null creates a new one. */
  privateKey: Uint8Array | null
  /** Whether private, loopback and link-local addresses may be dialled. */
  allowPrivate: boolean
}

export interface BlockNetwork {
  readonly peerId: string
  /** Multiaddrs that others can dial. */
  addresses(): string[]
  /** Connects to one of a peer's addresses (`…/p2p/<id>`), or a known peer (`/p2p/<id>`). Rejects if none responds. */
  dial(addresses: string[], signal: AbortSignal): Promise<void>
  /** Begins retrieving a DAG. The returned function asks peers for one block until one sends it or the signal fires. */
  retrieval(): (cid: CID, signal: AbortSignal) => Promise<Uint8Array>
  stop(): Promise<void>
}

/**
 * Starts the node. While it runs, connected peers can get every block of the folder.
 * @throws StorageError `unavailable` if it cannot listen on an address.
 */
export async function startNetwork(blocks: NodeBlocks, options: NetworkOptions): Promise<BlockNetwork> {
  const libp2p = await createLibp2p({
    start: false,
    ...(options.privateKey && { privateKey: privateKeyFromProtobuf(options.privateKey) }),
    addresses: { listen: options.listen },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: { identify: identify() },
    connectionManager: {
      dialTimeout: DIAL_TIMEOUT_MS,
      addressDialTimeout: DIAL_TIMEOUT_MS,
      reconnectRetries: 0,
    },
    connectionGater: { denyDialMultiaddr: (address) => !options.allowPrivate && !isPublic(address) },
  })
  const bitswap = new Bitswap(libp2p, blocks)
  await bitswap.start()
  try {
    await libp2p.start()
  } catch (error) {
    await libp2p.stop()
    throw new StorageError('unavailable', `Cannot listen on ${options.listen}: ${(error as Error).message}`, {
      cause: error,
    })
  }

  return {
    peerId: libp2p.peerId.toString(),
    addresses: () => libp2p.getMultiaddrs().map(String),
    dial: async (addresses, signal) => {
      const targets = addresses.map((address) => multiaddr(address))
      const [only] = targets[0]?.getComponents() ?? []
      await libp2p.dial(only?.name === 'p2p' ? peerIdFromString(only.value ?? '') : targets, { signal })
    },
    retrieval: () => {
      const session = bitswap.createSession()
      return (cid, signal) => bitswap.want(cid, session, signal)
    },
    stop: async () => {
      await bitswap.stop()
      await libp2p.stop()
    },
  }
}

/**
 * True if a multiaddr begins with a public IP address. A DNS name does not count: only the transport learns its
 * address, when it is too late to refuse.
 */
function isPublic(address: Multiaddr): boolean {
  const [first] = address.getComponents()
  const isIp = first?.name === 'ip4' || first?.name === 'ip6'
  return isIp && !isPrivateAddress(first?.value ?? '')
}
