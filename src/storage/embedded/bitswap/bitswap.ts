import type { Connection, Libp2p, PeerId, Stream } from '@libp2p/interface'
import { CID } from 'multiformats/cid'
import { create as createDigest } from 'multiformats/hashes/digest'
import { encodingLength, decode as readVarint } from 'uint8-varint'
import { digestOf } from '../../dag/hashes.ts'
import type { NodeBlocks } from '../place.ts'
import { Frames } from './frames.ts'
import { type BlockEntry, decodeMessage, type Message } from './message.ts'
import { Peer } from './peer.ts'

const PROTOCOL = '/ipfs/bitswap/1.2.0'
const STREAMS = 256
/** A want that the asked peer has not answered after this time is sent to all peers. */
const PATIENCE_MS = 5_000
/** Peers do not remember what they lacked, so they are asked again. */
const ASK_AGAIN_MS = 15_000
const TICK_MS = 1_000

interface Want {
  cid: CID
  waiting: Set<{ session: Session; resolve: (block: Uint8Array) => void }>
  asked: Set<Peer>
  askedAtMs: number
  /** Every connected peer is asked, and each that connects later too. */
  everybody: boolean
}

/** The wants of one DAG. It remembers which peers had its blocks and asks those first. */
export interface Session {
  readonly peers: Set<Peer>
}

/**
 * Bitswap 1.2.0 over libp2p: asks connected peers for blocks, and sends them ours.
 *
 * Not `@helia/bitswap`, because of problems in 4.0.19. A block that is requested again soon after an abort is
 * never sent (the abort removes the new want, and peers are not told of it). One peer that does not read
 * holds up the wants to all others. A peer that asks for 1,000 blocks gets them all loaded into memory at
 * once.
 */
export class Bitswap {
  readonly #libp2p: Libp2p
  readonly #blocks: NodeBlocks
  readonly #peers = new Map<string, Peer>()
  readonly #wants = new Map<string, Want>()
  readonly #frames = new Frames()
  #registration = ''
  #tick: NodeJS.Timeout | undefined

  readonly #onDisconnect = ({ detail }: CustomEvent<PeerId>) => this.#disconnected(detail)

  constructor(libp2p: Libp2p, blocks: NodeBlocks) {
    this.#libp2p = libp2p
    this.#blocks = blocks
  }

  async start(): Promise<void> {
    const limits = { maxInboundStreams: STREAMS, maxOutboundStreams: STREAMS }
    await this.#libp2p.handle(
      PROTOCOL,
      (stream, connection) => void this.#receive(stream, connection),
      limits,
    )
    this.#registration = await this.#libp2p.register(PROTOCOL, {
      onConnect: (peerId) => this.#connected(peerId),
    })
    // Not the topology's event, which leaves out peers that never announced their protocols.
    this.#libp2p.addEventListener('peer:disconnect', this.#onDisconnect)
    this.#tick = setInterval(() => this.#askAgain(), TICK_MS).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#tick)
    this.#libp2p.unregister(this.#registration)
    this.#libp2p.removeEventListener('peer:disconnect', this.#onDisconnect)
    await this.#libp2p.unhandle(PROTOCOL)
    for (const peer of this.#peers.values()) peer.close()
    this.#peers.clear()
  }

  createSession(): Session {
    return { peers: new Set() }
  }

  /** A block whose bytes match its hash, whenever a peer sends it. Rejects only with the signal's reason. */
  async want(cid: CID, session: Session, signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted()
    const key = keyOf(cid.multihash.bytes)
    const want = this.#wants.get(key) ?? this.#begin(key, cid, session)
    return new Promise((resolve, reject) => {
      const waiter = {
        session,
        resolve: (block: Uint8Array) => {
          signal.removeEventListener('abort', onAbort)
          resolve(block)
        },
      }
      const onAbort = () => {
        want.waiting.delete(waiter)
        if (want.waiting.size === 0 && this.#wants.get(key) === want) this.#end(key, want)
        reject(signal.reason)
      }
      want.waiting.add(waiter)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #begin(key: string, cid: CID, session: Session): Want {
    const want: Want = { cid, waiting: new Set(), asked: new Set(), askedAtMs: Date.now(), everybody: false }
    this.#wants.set(key, want)
    const peer = leastBusy(session.peers)
    if (peer) this.#ask(key, want, peer)
    else this.#askEverybody(key, want)
    return want
  }

  #end(key: string, want: Want): void {
    this.#wants.delete(key)
    for (const peer of want.asked) {
      peer.outstanding--
      peer.cancel(key, want.cid)
    }
  }

  #ask(key: string, want: Want, peer: Peer): void {
    if (want.asked.has(peer)) return
    want.asked.add(peer)
    peer.outstanding++
    peer.want(key, want.cid)
  }

  #askEverybody(key: string, want: Want): void {
    want.everybody = true
    want.askedAtMs = Date.now()
    for (const peer of this.#peers.values()) this.#ask(key, want, peer)
  }

  #askAgain(): void {
    const now = Date.now()
    for (const [key, want] of this.#wants) {
      const waited = now - want.askedAtMs
      if (!want.everybody && waited >= PATIENCE_MS) this.#askEverybody(key, want)
      else if (want.everybody && waited >= ASK_AGAIN_MS) {
        for (const peer of want.asked) {
          peer.outstanding--
          peer.cancel(key, want.cid)
        }
        want.asked.clear()
        this.#askEverybody(key, want)
      }
    }
  }

  #connected(peerId: PeerId): void {
    const id = peerId.toString()
    if (this.#peers.has(id) || this.#libp2p.getConnections(peerId).length === 0) return
    const peer = new Peer({
      blocks: this.#blocks,
      open: async (signal) => {
        const [connection] = this.#libp2p.getConnections(peerId)
        if (!connection) throw new Error(`No connection to ${id}`)
        const stream = await connection.newStream(PROTOCOL, { signal, maxOutboundStreams: STREAMS })
        await stream.closeRead({ signal })
        return stream
      },
      onFailure: () => void this.#libp2p.hangUp(peerId).catch(() => {}),
    })
    this.#peers.set(id, peer)
    for (const [key, want] of this.#wants) {
      if (want.everybody) this.#ask(key, want, peer)
    }
  }

  #disconnected(peerId: PeerId): void {
    const id = peerId.toString()
    const peer = this.#peers.get(id)
    if (!peer) return
    this.#peers.delete(id)
    peer.close()
    for (const [key, want] of this.#wants) {
      for (const { session } of want.waiting) session.peers.delete(peer)
      if (want.asked.delete(peer) && !want.everybody) this.#askEverybody(key, want)
    }
  }

  async #receive(stream: Stream, connection: Connection): Promise<void> {
    const id = connection.remotePeer.toString()
    try {
      for await (const frame of this.#frames.read(stream, id)) {
        // A peer may send before it is known to support bitswap.
        this.#connected(connection.remotePeer)
        const peer = this.#peers.get(id)
        if (peer) await this.#handle(decodeMessage(frame), peer)
      }
      await stream.close()
    } catch (error) {
      // A peer does not learn that its message was rejected, and Kubo waits for the answer while connected.
      if (stream.status !== 'reset') void this.#libp2p.hangUp(connection.remotePeer).catch(() => {})
      stream.abort(error as Error)
    }
  }

  async #handle(message: Message, peer: Peer): Promise<void> {
    if (message.entries.length > 0 || message.full) peer.serve(message.entries, message.full)
    for (const block of message.blocks) await this.#arrived(block, peer)
    for (const { cid, has } of message.presences) {
      const key = keyOf(CID.decode(cid).multihash.bytes)
      const want = this.#wants.get(key)
      if (want && !has && !want.everybody) this.#askEverybody(key, want)
    }
  }

  /** Passes a block to those who want it: its hash is computed here, so it cannot be another one. */
  async #arrived({ prefix, data }: BlockEntry, peer: Peer): Promise<void> {
    if (this.#wants.size === 0) return
    const [, , code, length] = varints(prefix)
    if (code === undefined || length === undefined) return
    const key = keyOf(createDigest(code, await digestOf({ code, length }, data)).bytes)
    const want = this.#wants.get(key)
    if (!want) return
    this.#end(key, want)
    for (const { session, resolve } of want.waiting) {
      session.peers.add(peer)
      resolve(data)
    }
  }
}

const keyOf = (multihash: Uint8Array): string => Buffer.from(multihash).toString('latin1')

function leastBusy(peers: Set<Peer>): Peer | null {
  let best: Peer | null = null
  for (const peer of peers) {
    if (!peer.isClosed && (!best || peer.outstanding < best.outstanding)) best = peer
  }
  return best
}

function varints(bytes: Uint8Array): number[] {
  const values: number[] = []
  for (let at = 0; at < bytes.length; at += encodingLength(values.at(-1) ?? 0))
    values.push(readVarint(bytes, at))
  return values
}
