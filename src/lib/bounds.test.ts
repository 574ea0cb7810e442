import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ApiError } from '../errors.ts'
import { BOUNDS, type Bound, Bounds } from './bounds.ts'

const ours = { keyId: 'key', workspaceId: 'ours' }
const refused = (whose: string) => ({
  status: 429,
  code: 'too_many_at_a_time',
  message: `Too many event streams at a time: ${whose}`,
  headers: { 'retry-after': '5' },
})

describe('the table of bounds', () => {
  for (const [kind, { caller, workspace, process }] of Object.entries<Bound>(BOUNDS))
    it(`the table of bounds leaves room for others: ${kind}`, () => {
      const most = [caller, workspace].filter((number) => number !== null)
      for (const [i, number] of most.entries()) assert.ok(number <= (most[i + 1] ?? process - 1))
    })
})

/** A transfer of a given speed. */
function transfer(bytesPerMs: number, isClientsTurn = true) {
  const start = performance.now()
  const ended: ApiError[] = []
  return {
    ended,
    bytes: () => bytesPerMs * (performance.now() - start),
    isClientsTurn: () => isClientsTurn,
    end: (error: ApiError) => void ended.push(error),
  }
}

describe('the places of a kind', () => {
  const from = (address: string) => ({ address })
  const limits = { uploads: { caller: 6, workspace: 6, process: 8 } }

  it('the last quarter of places is reserved for callers with few', () => {
    const bounds = new Bounds(limits)
    for (let i = 0; i < 6; i++) bounds.take('uploads', from('192.0.2.1'))
    const one = bounds.take('uploads', from('192.0.2.2'))
    assert.throws(() => bounds.take('uploads', from('192.0.2.2')), {
      status: 429,
      message: 'Too many uploads at a time: 6 of this server, which keeps the others for callers with few',
    })
    bounds.take('uploads', from('192.0.2.3'))
    one()
    bounds.take('uploads', from('192.0.2.2'))
  })
  it('a newcomer takes the place of the slowest transfer of the largest holder', (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const clock = context.mock.method(performance, 'now', () => 0)
    const bounds = new Bounds(limits)
    const [quick, slow, other] = [transfer(50), transfer(1), transfer(0)]
    for (const one of [quick, slow]) bounds.take('uploads', from('192.0.2.1'), one)
    for (let i = 0; i < 4; i++) bounds.take('uploads', from('192.0.2.1'), transfer(20))
    bounds.take('uploads', from('192.0.2.2'), other)
    bounds.take('uploads', from('192.0.2.3'), transfer(0))
    const newcomer = () => bounds.take('uploads', from('192.0.2.4'), transfer(1))
    assert.throws(newcomer, { status: 429, message: 'Too many uploads at a time: 8 of this server' })
    clock.mock.mockImplementation(() => 20_000)
    newcomer()
    assert.deepEqual([quick.ended, other.ended], [[], []])
    assert.deepEqual([slow.ended[0]?.status, slow.ended.length], [429, 1])
    assert.equal(bounds.underWay('uploads'), 8)
  })
  it('a transfer ends if its client sends or reads almost nothing for a minute', (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    let now = 0
    context.mock.method(performance, 'now', () => now)
    const bounds = new Bounds()
    const [slow, quick, waiting] = [transfer(0.01), transfer(1), transfer(0, false)]
    for (const one of [slow, quick, waiting]) bounds.take('uploads', ours, one)
    for (; now < 120_000; ) {
      now += 10_000
      context.mock.timers.tick(10_000)
      if (now < 60_000) assert.deepEqual(slow.ended, [])
    }
    assert.deepEqual([slow.ended[0]?.status, slow.ended[0]?.code, slow.ended.length], [408, 'too_slow', 1])
    assert.deepEqual([quick.ended, waiting.ended], [[], []])
    assert.equal(bounds.underWay('uploads'), 2)
  })
})

describe('bounds', () => {
  it('bounds apply per caller, per workspace and in total', () => {
    const bounds = new Bounds({ eventStreams: { caller: 1, workspace: 2, process: 3 } })
    const take = (keyId: string, workspaceId: string) => bounds.take('eventStreams', { keyId, workspaceId })
    const release = take('a', 'ours')
    assert.throws(() => take('a', 'ours'), refused('1 of this key'))
    take('b', 'ours')
    assert.throws(() => take('c', 'ours'), refused('2 of this workspace'))
    take('d', 'theirs')
    assert.throws(() => take('e', 'others'), refused('3 of this server'))
    release()
    release()
    assert.equal(bounds.underWay('eventStreams'), 2)
    take('e', 'others')
  })
  it('bounds of one kind do not affect another', () => {
    const bounds = new Bounds({ eventStreams: { process: 1 }, waits: { process: 1 } })
    bounds.take('eventStreams', ours)
    bounds.take('waits', ours)
  })
  it('bounds count by address if there is no key', () => {
    const bounds = new Bounds({ downloads: { caller: 1 } })
    const take = (address?: string) => bounds.take('downloads', { address, workspaceId: 'ours' })
    take('192.0.2.1')
    assert.throws(() => take('192.0.2.1'), { message: 'Too many downloads at a time: 1 of your address' })
    take('192.0.2.2')
    for (let i = 0; i < 3; i++) take(undefined)
  })
  it('bounds count a CID across all callers', () => {
    const bounds = new Bounds({ dagDownloads: { caller: 1 } })
    bounds.take('dagDownloads', { cid: 'a', address: '192.0.2.1' })
    const again = () => bounds.take('dagDownloads', { cid: 'a', address: '192.0.2.2' })
    assert.throws(again, /: 1 of this CID$/)
    bounds.take('dagDownloads', { cid: 'b', address: '192.0.2.1' })
  })
  it('bounds release the place of failed work', async () => {
    const bounds = new Bounds({ waits: { process: 1 } })
    const fail = () => bounds.run('waits', ours, async () => assert.fail('it fails'))
    await assert.rejects(fail(), /it fails/)
    await assert.rejects(fail(), /it fails/)
    assert.equal(bounds.underWay('waits'), 0)
  })
})
