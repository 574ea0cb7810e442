import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeMessage, emptyMessage, encodeMessage } from './message.ts'

const want = (cid: Uint8Array) => ({ cid, cancel: false, haveOnly: false, sendDontHave: true })

test('what a peer wants does not keep the message in memory that it came in', () => {
  const block = { prefix: Buffer.from([1]), data: new Uint8Array(1_000_000) }
  const message = { ...emptyMessage(), entries: [want(Buffer.from('a CID'))], blocks: [block] }
  const [entry] = decodeMessage(encodeMessage(message)).entries
  assert.equal(`${Buffer.from(entry?.cid ?? [])}`, 'a CID')
  assert.equal(entry?.cid.buffer.byteLength, 5)
})

test('a message with a want of no CID that there could be is refused', () => {
  const message = { ...emptyMessage(), entries: [want(new Uint8Array(257))] }
  assert.throws(() => decodeMessage(encodeMessage(message)), /A CID of 257 bytes/)
})

test('a message of very many empty parts is refused', () => {
  const [WANT, BLOCK, PRESENCE] = [0x0a, 0x1a, 0x22]
  for (const field of [BLOCK, PRESENCE]) {
    const parts = (count: number) => Buffer.alloc(2 * count, Buffer.of(field, 0))
    decodeMessage(parts(16_384))
    assert.throws(() => decodeMessage(parts(16_385)), /More than 16384 parts/)
  }
  const wants = Buffer.alloc(2 * 16_385, Buffer.of(WANT, 0))
  const length = Buffer.of(
    (wants.length & 0x7f) | 0x80,
    ((wants.length >> 7) & 0x7f) | 0x80,
    wants.length >> 14,
  )
  const wantlist = Buffer.concat([Buffer.of(WANT), length, wants])
  assert.throws(() => decodeMessage(wantlist), /More than 16384 parts/)
})
