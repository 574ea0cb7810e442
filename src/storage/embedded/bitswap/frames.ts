import type { Stream } from '@libp2p/interface'
import { decode } from 'uint8-varint'

/** Maximum size of one message: others send blocks of up to 2 MiB, and a few at a time. */
const FRAME_BYTES = 4 * 1024 * 1024
/** Maximum bytes of the length before a message. */
const LENGTH_BYTES = 4
/** Maximum time from the first byte of a message to its last one. */
const FRAME_MS = 60_000
/** Bytes of incomplete messages: of one peer, which may have a stream for each message, and of all peers. */
const BOUNDS = { peer: 16 * FRAME_BYTES, all: 64 * FRAME_BYTES }

/**
 * Reads the messages of all peers, each preceded by its length. Anyone may connect, begin messages on any number of
 * streams and never end them, so their total memory is bounded. The memory of a message is allocated for its whole
 * length at its beginning, in one piece: the small parts in which it may arrive could take many times as much.
 */
export class Frames {
  readonly #frameMs: number
  readonly #ofPeers = new Map<string, number>()
  #ofAll = 0

  constructor(frameMs = FRAME_MS) {
    this.#frameMs = frameMs
  }

  /** The messages of a stream. @throws Error if one is too large or late, or begins while too many are incomplete. */
  async *read(
    stream: Pick<Stream, 'abort'> & AsyncIterable<Chunk>,
    peer: string,
  ): AsyncGenerator<Uint8Array> {
    const length: number[] = []
    let frame: { bytes: Uint8Array; filled: number; timer: NodeJS.Timeout } | undefined
    const end = () => {
      if (!frame) return
      clearTimeout(frame.timer)
      this.#take(peer, -frame.bytes.length)
      frame = undefined
    }
    try {
      for await (const chunk of stream) {
        const bytes = chunk.subarray()
        for (let at = 0; at < bytes.length; ) {
          if (!frame) {
            const byte = bytes[at++] as number
            if (length.push(byte) > LENGTH_BYTES) throw new Error('A message without a length')
            if (byte >= 0x80) continue
            frame = this.#begin(stream, peer, decode(Uint8Array.from(length.splice(0))))
          }
          const part = bytes.subarray(at, at + frame.bytes.length - frame.filled)
          frame.bytes.set(part, frame.filled)
          frame.filled += part.length
          at += part.length
          if (frame.filled < frame.bytes.length) continue
          clearTimeout(frame.timer)
          yield frame.bytes
          end()
        }
      }
    } finally {
      end()
    }
  }

  #begin(stream: Pick<Stream, 'abort'>, peer: string, length: number) {
    if (length > FRAME_BYTES) throw new Error(`A message of ${length} bytes`)
    if (this.#ofAll + length > BOUNDS.all || (this.#ofPeers.get(peer) ?? 0) + length > BOUNDS.peer)
      throw new Error('Too many messages are under way')
    this.#take(peer, length)
    const late = () => stream.abort(new Error(`A message takes longer than ${this.#frameMs} ms`))
    const timer = setTimeout(late, this.#frameMs).unref()
    return { bytes: new Uint8Array(Buffer.allocUnsafeSlow(length).buffer), filled: 0, timer }
  }

  #take(peer: string, bytes: number): void {
    this.#ofAll += bytes
    const ofPeer = (this.#ofPeers.get(peer) ?? 0) + bytes
    if (ofPeer > 0) this.#ofPeers.set(peer, ofPeer)
    else this.#ofPeers.delete(peer)
  }
}

/** A part of a stream: a byte array, or a list of byte arrays. */
interface Chunk {
  subarray(): Uint8Array
}
