import { type Reader, reader, type Writer, writer } from 'protons-runtime'

/** Asks for a block, or cancels that request. */
export interface WantEntry {
  cid: Uint8Array
  cancel: boolean
  /** Asks only whether the peer has the block. */
  haveOnly: boolean
  /** The peer should report if it does not have the block. */
  sendDontHave: boolean
}

/** A block: `prefix` is its CID without the digest, as varints (version, codec, hash function, digest length). */
export interface BlockEntry {
  prefix: Uint8Array
  data: Uint8Array
}

interface PresenceEntry {
  cid: Uint8Array
  has: boolean
}

/** A message of Bitswap 1.2.0, https://specs.ipfs.tech/bitswap-protocol/ */
export interface Message {
  entries: WantEntry[]
  /** Whether `entries` replace all earlier ones. */
  full: boolean
  blocks: BlockEntry[]
  presences: PresenceEntry[]
}

export const emptyMessage = (): Message => ({ entries: [], full: false, blocks: [], presences: [] })

/** Maximum wants, blocks or presences per message. One takes two bytes there, and hundreds in memory. */
const PARTS = 16_384
/** Longer than any CID of a block that is stored. */
const CID_BYTES = 256

const VARINT = 0
const BYTES = 2
const tag = (field: number, wireType: number): number => (field << 3) | wireType

/** The message as protobuf, without a length before it. */
export function encodeMessage(message: Message): Uint8Array {
  const out = writer()
  if (message.entries.length > 0 || message.full) {
    nested(out, 1, () => {
      for (const entry of message.entries) nested(out, 1, () => encodeWant(out, entry))
      if (message.full) out.uint32(tag(2, VARINT)).bool(true)
    })
  }
  for (const { prefix, data } of message.blocks) {
    nested(out, 3, () => {
      out.uint32(tag(1, BYTES)).bytes(prefix)
      out.uint32(tag(2, BYTES)).bytes(data)
    })
  }
  for (const { cid, has } of message.presences) {
    nested(out, 4, () => {
      out.uint32(tag(1, BYTES)).bytes(cid)
      if (!has) out.uint32(tag(2, VARINT)).uint32(1)
    })
  }
  return out.finish()
}

function encodeWant(out: Writer, entry: WantEntry): void {
  out.uint32(tag(1, BYTES)).bytes(entry.cid)
  out.uint32(tag(2, VARINT)).int32(1) // priority: we have no preference
  if (entry.cancel) out.uint32(tag(3, VARINT)).bool(true)
  if (entry.haveOnly) out.uint32(tag(4, VARINT)).uint32(1)
  if (entry.sendDontHave) out.uint32(tag(5, VARINT)).bool(true)
}

function nested(out: Writer, field: number, write: () => void): void {
  out.uint32(tag(field, BYTES)).fork()
  write()
  out.ldelim()
}

/** @throws Error if the bytes are not such a message. Unknown fields are ignored. */
export function decodeMessage(bytes: Uint8Array): Message {
  const message = emptyMessage()
  eachField(reader(bytes), bytes.length, (field, input) => {
    if (field === tag(1, BYTES)) decodeWantlist(input, message)
    else if (field === tag(3, BYTES)) add(message.blocks, decodeBlock(input))
    else if (field === tag(4, BYTES)) add(message.presences, decodePresence(input))
    else return false
    return true
  })
  return message
}

function add<T>(parts: T[], part: T): void {
  if (parts.length >= PARTS) throw new RangeError(`More than ${PARTS} parts`)
  parts.push(part)
}

function decodeWantlist(input: Reader, message: Message): void {
  eachField(input, end(input), (field) => {
    if (field === tag(1, BYTES)) add(message.entries, decodeWant(input))
    else if (field === tag(2, VARINT)) message.full = input.bool()
    else return false
    return true
  })
}

function decodeWant(input: Reader): WantEntry {
  const entry: WantEntry = { cid: new Uint8Array(), cancel: false, haveOnly: false, sendDontHave: false }
  eachField(input, end(input), (field) => {
    if (field === tag(1, BYTES)) entry.cid = decodeCid(input)
    else if (field === tag(3, VARINT)) entry.cancel = input.bool()
    else if (field === tag(4, VARINT)) entry.haveOnly = input.uint32() === 1
    else if (field === tag(5, VARINT)) entry.sendDontHave = input.bool()
    else return false
    return true
  })
  return entry
}

/** A copy: an entry waits for its response, and would keep the whole message in memory. */
function decodeCid(input: Reader): Uint8Array {
  const bytes = input.bytes()
  if (bytes.length > CID_BYTES) throw new RangeError(`A CID of ${bytes.length} bytes`)
  return bytes.slice()
}

function decodeBlock(input: Reader): BlockEntry {
  const block: BlockEntry = { prefix: new Uint8Array(), data: new Uint8Array() }
  eachField(input, end(input), (field) => {
    if (field === tag(1, BYTES)) block.prefix = input.bytes()
    else if (field === tag(2, BYTES)) block.data = input.bytes()
    else return false
    return true
  })
  return block
}

function decodePresence(input: Reader): PresenceEntry {
  const presence: PresenceEntry = { cid: new Uint8Array(), has: true }
  eachField(input, end(input), (field) => {
    if (field === tag(1, BYTES)) presence.cid = input.bytes()
    else if (field === tag(2, VARINT)) presence.has = input.uint32() === 0
    else return false
    return true
  })
  return presence
}

/** The position after the nested message that begins here. */
function end(input: Reader): number {
  const length = input.uint32()
  const position = input.pos + length
  if (position > input.len) throw new RangeError('A nested message is longer than the one around it')
  return position
}

/** Reads fields up to a position; those for which `read` returns false are skipped. */
function eachField(input: Reader, until: number, read: (field: number, input: Reader) => boolean): void {
  while (input.pos < until) {
    const field = input.uint32()
    if (!read(field, input)) input.skipType(field & 7)
  }
}
