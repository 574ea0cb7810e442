/**
 * The network side of the embedded node: bitswap over libp2p (TCP, Noise, Yamux), without DHT,
 * mDNS or bootstrap peers. Only to be imported dynamically: loading it costs time and memory that
 * a process which never retrieves does not have to spend.
 */
import { withBitswap } from '@helia/bitswap'
import type { BlockBroker } from '@helia/interface'
import { privateKeyFromProtobuf } from '@libp2p/crypto/keys'
import { identify } from '@libp2p/identify'
import { noise } from '@libp2p/noise'
import { peerIdFromString } from '@libp2p/peer-id'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { multiaddr } from '@multiformats/multiaddr'
import type { Blockstore } from 'interface-blockstore'
import { createLibp2p } from 'libp2p'
import type { CID } from 'multiformats/cid'
import { StorageError } from '../port.ts'
import type { BlockFolder } from './blocks.ts'
import { blockKey, hasherOf } from './codecs.ts'
import { isPublicAddress } from './private-address.ts'

/** A peer that does not take a message within this is not waited for. */
const SEND_TIMEOUT_MS = 5_000
/** A message of up to 4 MiB has to arrive within this. */
const RECEIVE_TIMEOUT_MS = 60_000
const DIAL_TIMEOUT_MS = 10_000

export interface NetworkOptions {
  /** Multiaddrs to listen on; none: the node only dials. */
  listen: string[]
  /** The node's key as a libp2p protobuf; null takes a new one. */
  privateKey: Uint8Array | null
  /** Whether private, loopback and link-local addresses may be dialled. */
  allowPrivate: boolean
}

export interface BlockNetwork {
  readonly peerId: string
  /** Multiaddrs that others can dial. */
  addresses(): string[]
  /** Connects to one of a peer's addresses (`…/p2p/<peer id>`), or to a known peer by `/p2p/<peer id>` alone. Rejects when none answers. */
  dial(addresses: string[], signal: AbortSignal): Promise<void>
  /** A block from any connected peer, at any time from now until the signal fires. Not checked against its hash. */
  want(cid: CID, signal: AbortSignal): Promise<Uint8Array>
  stop(): Promise<void>
}

/**
 * Starts the node. While it runs, connected peers can have every block of the folder.
 * @throws StorageError `unavailable` when an address cannot be listened on.
 */
export async function startNetwork(blocks: BlockFolder, options: NetworkOptions): Promise<BlockNetwork> {
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
    connectionGater: { denyDialMultiaddr: (address) => !options.allowPrivate && !isPublicAddress(address) },
  })
  const bitswap = await attachBitswap(libp2p, blocks)
  try {
    await libp2p.start()
  } catch (error) {
    await libp2p.stop()
    throw new StorageError('unavailable', `Cannot listen on ${options.listen}: ${(error as Error).message}`, {
      cause: error,
    })
  }
  const wants = new Wants((cid, signal) => bitswap.retrieve(cid, { signal }))

  return {
    peerId: libp2p.peerId.toString(),
    addresses: () => libp2p.getMultiaddrs().map(String),
    dial: async (addresses, signal) => {
      const targets = addresses.map((address) => multiaddr(address))
      const [only] = targets[0]?.getComponents() ?? []
      await libp2p.dial(only?.name === 'p2p' ? peerIdFromString(only.value ?? '') : targets, { signal })
    },
    want: (cid, signal) => wants.want(cid, signal),
    stop: async () => {
      await libp2p.stop()
    },
  }
}

type Broker = Required<Pick<BlockBroker, 'retrieve'>>

/**
 * Bitswap without the rest of Helia: the package hands its broker out only by extending a Helia
 * node, so it gets the few parts of one that it uses.
 */
async function attachBitswap(
  libp2p: Awaited<ReturnType<typeof createLibp2p>>,
  blocks: BlockFolder,
): Promise<Broker> {
  let broker: Broker | undefined
  const node = {
    status: 'starting',
    libp2p,
    logger: libp2p.logger,
    blockstore: readOnlyStore(blocks),
    // Providers are looked for once per DAG, by search.ts, not for each block.
    routing: { async *findProviders() {} },
    getHasher: hasherOf,
    hasBlockBroker: () => false,
    addBlockBroker: (added: Broker) => {
      broker = added
    },
    addMixin: (mixin: { start(node: unknown): Promise<void> }) => {
      started = mixin.start(node)
    },
  }
  let started: Promise<void> | undefined
  withBitswap(node as unknown as Parameters<typeof withBitswap>[0], {
    sendWantlistDebounce: 1,
    messageSendTimeout: SEND_TIMEOUT_MS,
    messageReceiveTimeout: RECEIVE_TIMEOUT_MS,
  })
  await started
  if (!broker) throw new Error('@helia/bitswap did not hand out its block broker')
  return broker
}

/** The part of a blockstore that serves blocks to others. */
function readOnlyStore(blocks: BlockFolder): Pick<Blockstore, 'has' | 'get'> {
  return {
    has: async (cid) => (await blocks.size(cid)) !== null,
    get: async function* (cid) {
      const bytes = await blocks.read(cid)
      if (!bytes) throw Object.assign(new Error(`Block ${cid} is not stored here`), { name: 'NotFoundError' })
      yield bytes
    },
  }
}

interface SharedWant {
  bytes: Promise<Uint8Array>
  waiting: number
  abandon: AbortController
}

/**
 * Asks for each block once, however many pins wait for it: bitswap takes a block off its list for
 * everybody as soon as one of them gives up.
 */
class Wants {
  readonly #wants = new Map<string, SharedWant>()
  readonly #ask: (cid: CID, signal: AbortSignal) => Promise<Uint8Array>

  constructor(ask: (cid: CID, signal: AbortSignal) => Promise<Uint8Array>) {
    this.#ask = ask
  }

  async want(cid: CID, signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted()
    const key = blockKey(cid)
    const want = this.#wants.get(key) ?? this.#begin(key, cid)
    want.waiting++
    let onAbort = () => {}
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort)
    })
    try {
      return await Promise.race([want.bytes, aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (--want.waiting === 0) {
        if (this.#wants.get(key) === want) this.#wants.delete(key)
        want.abandon.abort()
      }
    }
  }

  #begin(key: string, cid: CID): SharedWant {
    const abandon = new AbortController()
    const bytes = this.#ask(cid, abandon.signal)
    bytes.catch(() => {}) // nobody may be waiting any more
    const want = { bytes, waiting: 0, abandon }
    this.#wants.set(key, want)
    return want
  }
}
