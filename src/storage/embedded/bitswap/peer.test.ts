import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { test } from 'node:test'
import type { Stream } from '@libp2p/interface'
import { decode } from 'it-length-prefixed'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import { useFolder } from '../../../../test/support/folder.ts'
import { BlockFolder } from '../blocks.ts'
import { decodeMessage, type Message } from './message.ts'
import { Peer } from './peer.ts'

const RAW = 0x55
test('a block is asked for also when that is said while a want of the peer turns out to need no answer', async (t) => {
  const dir = await useFolder('berth-peer-', t)
  const blocks = new BlockFolder(dir, { touchAfterMs: Number.POSITIVE_INFINITY })
  for (const folder of [blocks.dir, blocks.tempDir]) await mkdir(folder)
  const missing = CID.createV1(RAW, await sha256.digest(randomBytes(100)))

  const sent = Promise.withResolvers<Message>()
  const stream = {
    status: 'open',
    send(data: Uint8Array) {
      for (const frame of decode([data])) sent.resolve(decodeMessage(frame.subarray()))
      return true
    },
    close: async () => {},
    abort: () => {},
  }
  const size = blocks.size.bind(blocks)
  blocks.size = async (cid) => {
    const found = await size(cid)
    if (cid.equals(missing)) peer.want('ours', missing)
    return found
  }
  const peer = new Peer({ blocks, open: async () => stream as unknown as Stream, onFailure: () => {} })
  t.after(() => peer.close())
  peer.serve([{ cid: missing.bytes, cancel: false, haveOnly: false, sendDontHave: false }], false)
  const { entries } = await sent.promise
  assert.deepEqual(
    entries.map(({ cid }) => CID.decode(cid).toString()),
    [missing.toString()],
  )
})
