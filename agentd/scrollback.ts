/** The last bytes of a terminal's output. A position counts all bytes before it, including those no longer kept. */
export class Scrollback {
  readonly #ring: Buffer
  #end = 0

  constructor(size: number) {
    this.#ring = Buffer.alloc(size)
  }

  /** The position of the next byte. */
  get end(): number {
    return this.#end
  }

  push(bytes: Buffer): void {
    const size = this.#ring.length
    const kept = bytes.subarray(-size)
    this.#end += bytes.length
    const at = (this.#end - kept.length) % size
    const copied = kept.copy(this.#ring, at)
    kept.copy(this.#ring, 0, copied)
  }

  /**
   * The bytes since a position, or all that are kept. If earlier ones are lost, they start with a whole line, so that
   * no escape sequence is cut.
   */
  since(position = 0): { from: number; bytes: Buffer } {
    const size = this.#ring.length
    const oldest = Math.max(0, this.#end - size)
    const from = Math.min(Math.max(position, oldest), this.#end)
    const at = from % size
    const bytes = Buffer.concat([this.#ring.subarray(at), this.#ring.subarray(0, at)]).subarray(
      0,
      this.#end - from,
    )
    const cut = position < oldest ? bytes.indexOf('\n') + 1 : 0
    return { from: from + cut, bytes: bytes.subarray(cut) }
  }
}
