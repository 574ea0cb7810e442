import type { Stream } from '@libp2p/interface'
import { encode } from 'it-length-prefixed'
import { CID } from 'multiformats/cid'
import { encode as varint } from 'uint8-varint'
import { within } from '../../../lib/signals.ts'
import type { NodeBlocks } from '../place.ts'
import { emptyMessage, encodeMessage, type Message, type WantEntry } from './message.ts'

/** A message accepts more blocks while it is smaller than this: at most 3 MiB with the last one. */
const MESSAGE_BYTES = 1024 * 1024
/** A block up to this size answers the question whether we have it. */
const INLINE_BYTES = 1024
/** Maximum blocks that a peer may have requested and not yet received. */
const SERVE_LIMIT = 4096
/** A peer that does not accept a message within this time is given up. */
const SEND_MS = 30_000
/** A stream without traffic is closed after this. Other implementations close it after 10 s. */
const IDLE_MS = 5_000

export interface PeerDeps {
  blocks: NodeBlocks
  /** Opens a bitswap stream to the peer. */
  open(signal: AbortSignal): Promise<Stream>
  /** Called when sending to the peer fails. */
  onFailure(): void
}

/** Messages to one connected peer, one at a time: our wants, and the blocks that it wants. */
export class Peer {
  /** Wants that the peer has not answered yet, as counted by the exchange. */
  outstanding = 0
  readonly #deps: PeerDeps
  readonly #wants = new Map<string, WantEntry>()
  readonly #cancels = new Map<string, WantEntry>()
  readonly #serving = new Map<string, WantEntry>()
  readonly #refused: WantEntry[] = []
  readonly #closed = new AbortController()
  #stream: Stream | null = null
  #idle: NodeJS.Timeout | null = null
  #running = false

  constructor(deps: PeerDeps) {
    this.#deps = deps
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted
  }

  /** Asks the peer for a block. */
  want(key: string, cid: CID): void {
    this.#wants.set(key, { cid: cid.bytes, cancel: false, haveOnly: false, sendDontHave: true })
    this.#wake()
  }

  /** Cancels a want, or confirms that it is settled: some peers do not send a block again before that. */
  cancel(key: string, cid: CID): void {
    if (this.#wants.delete(key)) return
    this.#cancels.set(key, { cid: cid.bytes, cancel: true, haveOnly: false, sendDontHave: false })
    this.#wake()
  }

  /** Records what the peer wants from us. */
  serve(entries: WantEntry[], replaceAll: boolean): void {
    if (replaceAll) this.#serving.clear()
    for (const entry of entries) {
      const key = Buffer.from(entry.cid).toString('latin1')
      if (entry.cancel) this.#serving.delete(key)
      else if (this.#serving.size < SERVE_LIMIT || this.#serving.has(key)) this.#serving.set(key, entry)
      else if (entry.sendDontHave && this.#refused.length < SERVE_LIMIT) this.#refused.push(entry)
    }
    this.#wake()
  }

  /** Ends everything in progress. */
  close(): void {
    this.#closed.abort()
    if (this.#idle) clearTimeout(this.#idle)
    this.#stream?.abort(new Error('The peer is gone'))
  }

  #wake(): void {
    if (this.#running || this.#closed.signal.aborted) return
    this.#running = true
    // Everything from the same turn of the event loop goes into one message.
    setImmediate(() => void this.#run())
  }

  get #hasWork(): boolean {
    return this.#wants.size + this.#cancels.size + this.#serving.size + this.#refused.length > 0
  }

  async #run(): Promise<void> {
    try {
      while (this.#hasWork) {
        const message = await this.#next()
        if (message) await this.#send(encodeMessage(message))
      }
    } catch (error) {
      this.#stream?.abort(error as Error)
      this.#stream = null
      if (!this.#closed.signal.aborted) this.#deps.onFailure()
    } finally {
      this.#running = false
    }
  }

  /** The next message, or null if nothing needs to be sent. */
  async #next(): Promise<Message | null> {
    const message = emptyMessage()
    message.entries.push(...this.#cancels.values())
    for (const [key, entry] of this.#wants) {
      if (this.#cancels.has(key)) continue // requested again: this must be a later message
      message.entries.push(entry)
      this.#wants.delete(key)
    }
    this.#cancels.clear()
    for (const { cid } of this.#refused.splice(0)) message.presences.push({ cid, has: false })
    let size = 0
    for (const [key, entry] of this.#serving) {
      if (size >= MESSAGE_BYTES) break
      this.#serving.delete(key)
      size += await this.#answer(entry, message)
    }
    const isEmpty = message.entries.length + message.blocks.length + message.presences.length === 0
    return isEmpty ? null : message
  }

  /** Adds the response to a want; returns the bytes that it adds. A missing block is not remembered. */
  async #answer(entry: WantEntry, message: Message): Promise<number> {
    const cid = CID.decode(entry.cid)
    const size = await this.#deps.blocks.size(cid)
    if (size !== null && entry.haveOnly && size > INLINE_BYTES) {
      message.presences.push({ cid: entry.cid, has: true })
      return entry.cid.length
    }
    const data = size === null ? null : await this.#deps.blocks.read(cid)
    if (data) message.blocks.push({ prefix: prefixOf(cid), data })
    else if (entry.sendDontHave) message.presences.push({ cid: entry.cid, has: false })
    return data?.length ?? entry.cid.length
  }

  async #send(bytes: Uint8Array): Promise<void> {
    const signal = within(SEND_MS, this.#closed.signal)
    if (this.#idle) clearTimeout(this.#idle)
    if (this.#stream?.status !== 'open') this.#stream = await this.#deps.open(signal)
    const stream = this.#stream
    if (!stream.send(encode.single(bytes))) await stream.onDrain({ signal })
    this.#idle = setTimeout(() => {
      if (this.#stream === stream) this.#stream = null
      stream.close().catch((error) => stream.abort(error))
    }, IDLE_MS).unref()
  }
}

/** A CID without its digest, in the format that bitswap sends with a block. */
function prefixOf(cid: CID): Uint8Array {
  const { code, digest } = cid.multihash
  return Buffer.concat([cid.version, cid.code, code, digest.length].map((value) => varint(value)))
}
