/** The stream from Kubo when the other side, or the body, is slow. */
import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { after, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { KuboError } from '../../../src/storage/kubo/kubo-errors.ts'
import { blockReader } from '../../../src/storage/kubo/read.ts'
import { readBlocks } from '../../../src/storage/kubo/read-blocks.ts'
import { KuboStream } from '../../../src/storage/kubo/stream.ts'
import type { Block } from '../../../src/storage/port.ts'
import { listen } from '../../support/http-server.ts'
import { block, namesOf } from './cases/blocks.ts'
import { failsWith, MIB } from './cases/context.ts'
import { collect } from './content.ts'

const IDLE_MS = 1500

describe("Kubo's stream", () => {
  /** A server that answers with `answer`. */
  const open = async (answer: RequestListener): Promise<KuboStream> => {
    const stream = new KuboStream(await listen(answer))
    after(() => stream.close())
    return stream
  }
  const call = async (answer: RequestListener, content?: AsyncIterable<Uint8Array>) => {
    const stream = await open(answer)
    const body = content && { type: 'application/octet-stream', content }
    const { signal } = new AbortController()
    return `${await collect(stream.bytes('add', {}, { signal, idleMs: IDLE_MS, ...(body && { body }) }))}`
  }

  test('a body may take its time, even if the response has begun', async () => {
    async function* slow() {
      yield Buffer.from('first')
      await delay(2 * IDLE_MS)
      yield Buffer.from('second')
    }
    const echo: RequestListener = (request, response) => {
      response.write('begun,')
      request.pipe(response)
    }
    assert.equal(await call(echo, slow()), 'begun,firstsecond')
  })

  test('a server that does not read the body is unavailable', async () => {
    async function* endless() {
      for (;;) yield Buffer.alloc(MIB)
    }
    await assert.rejects(
      call(() => {}, endless()),
      failsWith('unavailable'),
    )
  })

  test('a server that is silent after it got the body is unavailable', async () => {
    async function* short() {
      yield Buffer.from('all')
    }
    await assert.rejects(
      call((request) => request.resume(), short()),
      failsWith('unavailable'),
    )
  })

  test('a body that fails throws its own error', async () => {
    async function* broken() {
      yield Buffer.from('a part')
      throw new Error('the upload broke off')
    }
    await assert.rejects(
      call((request) => request.resume(), broken()),
      /^Error: the upload broke off$/,
    )
  })

  test('a response that Kubo cuts short is an error, unlike in kubo-rpc-client', async () => {
    const cut = call((_, response) => {
      response.writeHead(200, { trailer: 'X-Stream-Error' })
      response.write('one half')
      response.addTrailers({ 'X-Stream-Error': 'the disk is full' })
      response.end()
    })
    await assert.rejects(cut, new KuboError('the disk is full'))
  })

  test('the rows of a response are parsed however they are cut, with or without a last line end', async () => {
    const rows = [{ Progress: 1 }, { Pins: ['ü'] }]
    for (const end of ['', '\n']) {
      const stream = await open((_, response) => {
        const text = Buffer.from(rows.map((row) => JSON.stringify(row)).join('\n\n') + end)
        for (const byte of text) response.write(Uint8Array.of(byte))
        response.end()
      })
      const read: unknown[] = []
      const { signal } = new AbortController()
      for await (const row of stream.rows('pin/add', {}, { signal })) read.push(row)
      assert.deepEqual(read, rows)
    }
  })

  test('a block that is too large is not read from a node, unlike by kubo-rpc-client', async () => {
    const stream = await open((_, response) => void response.end(Buffer.alloc(8 * MIB)))
    const { cid } = await block(Buffer.from('large'))
    await assert.rejects(blockReader(stream, new AbortController().signal)(cid), failsWith('invalid_object'))
  })

  describe('blocks of a node', () => {
    const { signal } = new AbortController()
    /** Reads all blocks below the first block from a node that has them; `onCat` changes the responses to `cat`. */
    const read = async (blocks: Block[], onCat: (bytes: Buffer) => { bytes: Buffer; trailer?: string }) => {
      const held = new Map(blocks.map(({ cid, bytes }) => [`${cid}`, bytes]))
      const calls: string[] = []
      const stream = await open((request, response) => {
        const { pathname, searchParams } = new URL(`http://kubo${request.url}`)
        calls.push(pathname.slice('/api/v0/'.length))
        const asked = searchParams.getAll('arg').map((arg) => held.get(arg.replace('/ipfs/', '')))
        const all = Buffer.concat(asked as Uint8Array[])
        const { bytes, trailer } = pathname.endsWith('/cat') ? onCat(all) : { bytes: all }
        response.writeHead(200, { trailer: 'X-Stream-Error' })
        response.write(bytes)
        if (trailer) response.addTrailers({ 'X-Stream-Error': trailer })
        response.end()
      })
      const names = await namesOf(readBlocks(stream, (blocks[0] as Block).cid, signal))
      return { names, calls }
    }
    const leavesOf = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => block(Buffer.from(`leaf ${i}`.padEnd(100)))))
    const whole = (bytes: Buffer) => ({ bytes })

    test('blocks of a node come in DAG order, many leaves per call', async () => {
      const leaves = await leavesOf(70)
      const inner = await directory(leaves.slice(0, 30))
      const root = await directory([leaves[69] as Block, inner, ...leaves.slice(30, 69)])
      const { names, calls } = await read([root, inner, ...leaves], whole)
      const order = [root, leaves[69] as Block, inner, ...leaves.slice(0, 69)]
      assert.deepEqual(
        names,
        order.map(({ cid }) => `${cid}`),
      )
      assert.deepEqual(calls.sort(), ['block/get', 'block/get', 'cat', 'cat', 'cat'])
    })

    test('blocks of a node are requested one by one if their parents misstate their sizes', async () => {
      const leaves = await leavesOf(3)
      const root = await directory(leaves.map(({ cid, bytes }, i) => ({ cid, bytes, size: 90 + 10 * i })))
      for (const lie of [root, await directory(leaves.map((leaf) => ({ ...leaf, size: 10 })))]) {
        const { names, calls } = await read([lie, ...leaves], whole)
        assert.equal(names.length, 4)
        assert.equal(calls.filter((call) => call === 'block/get').length, 4)
      }
    })

    test('blocks of a node that many others link to are requested once', async () => {
      const shared = await Promise.all((await leavesOf(100)).map((leaf) => directory([leaf])))
      const parents: Block[] = []
      for (let i = 0; i < 20; i++) parents.push(await directory([...shared, ...parents.slice(-1)]))
      const root = await directory(parents)
      const { names, calls } = await read([root, ...parents, ...shared, ...(await leavesOf(100))], whole)
      assert.equal(names.length, 1 + 20 + 100 + 100)
      assert.equal(calls.filter((call) => call === 'block/get').length, 1 + 20 + 100)
    })

    test('blocks of a node are rejected if one is damaged or the node fails at the end', async () => {
      const leaves = await leavesOf(3)
      const root = await directory(leaves)
      const damaged = (bytes: Buffer) => ({
        bytes: bytes.map((byte, i) => (i === 150 ? byte ^ 1 : byte)) as Buffer,
      })
      // A block that was damaged in transit arrives at a second request.
      assert.equal((await read([root, ...leaves], damaged)).names.length, 4)
      const broken = { cid: (leaves[1] as Block).cid, bytes: Buffer.alloc(100) }
      const held = [root, leaves[0] as Block, broken, leaves[2] as Block]
      await assert.rejects(read(held, whole), failsWith('not_found'))
      const failing = (bytes: Buffer) => ({ bytes, trailer: 'the disk is broken' })
      await assert.rejects(read([root, ...leaves], failing), /the disk is broken/)
    })
  })
})

/** A directory whose entries have the sizes of these blocks, or the given sizes. */
function directory(entries: (Block & { size?: number })[]): Promise<Block> {
  const Links = entries.map(({ cid, bytes, size }, i) => ({
    Name: `${i}`.padStart(3, '0'),
    Hash: cid,
    Tsize: size ?? bytes.length,
  }))
  const Data = new UnixFS({ type: 'directory' }).marshal()
  return block(dagPb.encode(dagPb.prepare({ Data, Links })), dagPb.code)
}
