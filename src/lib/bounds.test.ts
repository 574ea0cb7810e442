import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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

describe('bounds', () => {
  it('bounds hold for a caller, for a workspace and for all', () => {
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
  it('bounds of one kind are not those of another', () => {
    const bounds = new Bounds({ eventStreams: { process: 1 }, waits: { process: 1 } })
    bounds.take('eventStreams', ours)
    bounds.take('waits', ours)
  })
  it('bounds count an address where there is no key', () => {
    const bounds = new Bounds({ downloads: { caller: 1 } })
    const take = (address?: string) => bounds.take('downloads', { address, workspaceId: 'ours' })
    take('192.0.2.1')
    assert.throws(() => take('192.0.2.1'), { message: 'Too many downloads at a time: 1 of your address' })
    take('192.0.2.2')
    for (let i = 0; i < 3; i++) take(undefined)
  })
  it('bounds count a CID, whoever asks for it', () => {
    const bounds = new Bounds({ dagDownloads: { caller: 1 } })
    bounds.take('dagDownloads', { cid: 'a', address: '192.0.2.1' })
    const again = () => bounds.take('dagDownloads', { cid: 'a', address: '192.0.2.2' })
    assert.throws(again, /: 1 of this CID$/)
    bounds.take('dagDownloads', { cid: 'b', address: '192.0.2.1' })
  })
  it('bounds have a place again after work that failed', async () => {
    const bounds = new Bounds({ waits: { process: 1 } })
    const fail = () => bounds.run('waits', ours, async () => assert.fail('it fails'))
    await assert.rejects(fail(), /it fails/)
    await assert.rejects(fail(), /it fails/)
    assert.equal(bounds.underWay('waits'), 0)
  })
})
