/** Reads server-sent events while their bytes pass unchanged. */

/** The longest event; longer ones end the stream. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024
const NEWLINE = 0x0a
const RETURN = 0x0d

/** Takes the data of an event, parsed; true drops the event. */
export type OnData = (value: unknown) => boolean

/** Holds bytes until an event is complete, so that it can be dropped, and a comment never splits one. */
export class EventReader {
  readonly #onData: OnData
  #held: Buffer = Buffer.alloc(0)
  /** Up to where no event ends. */
  #searched = 0

  constructor(onData: OnData) {
    this.#onData = onData
  }

  /** The bytes of complete events, to pass on. @throws Error for an event that is too long. */
  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk
    const kept: Buffer[] = []
    let start = 0
    let keptFrom = 0
    let at = this.#searched
    for (;;) {
      const newline = bytes.indexOf(NEWLINE, at)
      if (newline === -1) break
      const next = bytes[newline + 1] === RETURN ? newline + 2 : newline + 1
      if (next >= bytes.length) break
      at = newline + 1
      if (bytes[next] !== NEWLINE) continue
      const end = next + 1
      if (this.#drops(bytes, start, end)) {
        kept.push(bytes.subarray(keptFrom, start))
        keptFrom = end
      }
      start = end
      at = end
    }
    kept.push(bytes.subarray(keptFrom, start))
    this.#held = bytes.subarray(start)
    if (this.#held.length > MAX_EVENT_BYTES) throw new Error('an event of the stream is too long')
    // The last two bytes may be the beginning of an end.
    this.#searched = Math.max(0, this.#held.length - 2)
    return kept.length === 1 ? (kept[0] as Buffer) : Buffer.concat(kept)
  }

  /** The rest, at the end of the stream. */
  end(): Buffer {
    return this.#drops(this.#held, 0, this.#held.length) ? Buffer.alloc(0) : this.#held
  }

  #drops(bytes: Buffer, start: number, end: number): boolean {
    let data = ''
    // A return at the end of a line is white space to JSON.
    for (const line of bytes.toString('utf8', start, end).split('\n'))
      if (line.startsWith('data:')) data += `${line.slice('data:'.length)}\n`
    if (data === '') return false
    let value: unknown
    try {
      value = JSON.parse(data)
    } catch {
      // Such as `[DONE]`.
      return false
    }
    return this.#onData(value)
  }
}
