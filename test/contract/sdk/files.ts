import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { missingCid } from '../context.ts'
import { fileOf, NETWORKS, type Network, type Sdk, textFile } from './open.ts'

const ids = (items: { id: string }[]) => items.map(({ id }) => id)

export function describeFiles(berth: Sdk): void {
  for (const network of NETWORKS) {
    describe(`sdk.files.${network}`, () => files(network, berth))
    describe(`sdk.groups.${network}`, () => groups(network, berth))
  }
  describe('sdk.files.public', () => queue(berth))
}

function files(network: Network, { watched: sdk, plain, upload, read, gateway }: Sdk): void {
  const files = sdk.files[network]

  it(`sdk.files.${network}: list, with every filter`, async () => {
    const mark = randomUUID()
    const group = await plain.groups[network].create({ name: mark })
    const marked = plain.upload[network].file(textFile(mark, `${mark}.txt`))
    const { id, cid } = await marked.keyvalues({ mark }).group(group.id)
    const { id: other } = await upload(network, mark)
    const lists: [string, string[], ReturnType<typeof files.list>][] = [
      ['name', [other, id], files.list().name(mark)],
      ['order', [id, other], files.list().name(mark).order('ASC')],
      ['group', [id], files.list().group(group.id)],
      ['noGroup', [other], files.list().name(mark).noGroup(true)],
      ['cid', [id], files.list().cid(cid)],
      ['mimeType', [id], files.list().name(mark).mimeType('text/plain')],
      ['keyvalues', [id], files.list().keyvalues({ mark })],
      ['limit', [other], files.list().name(mark).limit(1)],
      ['cidPending', [], files.list().name(mark).cidPending(true)],
    ]
    for (const [filter, expected, list] of lists)
      assert.deepEqual([filter, ids((await list).files)], [filter, expected])
    const { next_page_token } = await files.list().name(mark).limit(1)
    assert.deepEqual(ids((await files.list().name(mark).pageToken(next_page_token)).files), [id])
    assert.deepEqual(ids(await files.list().name(mark).limit(1).all()), [other, id])
  })

  it(`sdk.files.${network}: get, update, delete`, async () => {
    const { id, cid } = await upload(network)
    assert.equal((await files.get(id)).cid, cid)
    await files.update({ id, name: 'renamed', keyvalues: { a: '1', b: '2' } })
    const file = await files.update({ id, keyvalues: { b: '3' } })
    assert.partialDeepStrictEqual(file, { id, name: 'renamed', keyvalues: { a: '1', b: '3' } })
    assert.deepEqual(await files.delete([id]), [{ id, status: 'OK' }])
    await assert.rejects(files.get(id), { statusCode: 404 })
  })

  it(`sdk.files.${network}: addSwap, getSwapHistory, deleteSwap`, async () => {
    const [before, after] = [randomBytes(100), randomBytes(100)]
    const { cid } = await plain.upload[network].file(fileOf(before))
    const { cid: swapCid } = await plain.upload[network].file(fileOf(after))
    assert.equal((await files.addSwap({ cid, swapCid })).mapped_cid, swapCid)
    assert.deepEqual(await read(network, cid), after)
    assert.equal(await files.deleteSwap(cid), 'OK')
    assert.deepEqual(await read(network, cid), before)
    const history = await files.getSwapHistory({ cid, domain: gateway })
    assert.deepEqual(
      history.map((entry) => entry.mapped_cid),
      [null, swapCid],
    )
  })
}

function groups(network: Network, { watched: sdk, upload }: Sdk): void {
  const groups = sdk.groups[network]

  it(`sdk.groups.${network}: create, get, update, list, delete`, async () => {
    const mark = randomUUID()
    const { id } = await groups.create({ name: `${mark} 1` })
    const { id: other } = await groups.create({ name: `${mark} 2` })
    const group = await groups.update({ groupId: id, name: `${mark} 3`, isPublic: true })
    assert.partialDeepStrictEqual(group, { id, name: `${mark} 3`, is_public: true })
    assert.deepEqual(await groups.get({ groupId: id }), group)
    assert.deepEqual(ids((await groups.list().name(mark).isPublic(true)).groups), [id])
    const first = await groups.list().name(mark).limit(1)
    const second = await groups.list().name(mark).limit(1).pageToken(first.next_page_token)
    assert.deepEqual(ids([...first.groups, ...second.groups]).toSorted(), [id, other].toSorted())
    assert.equal((await groups.list().name(mark).limit(1).all()).length, 2)
    assert.equal(await groups.delete({ groupId: id }), 'OK')
    await assert.rejects(groups.get({ groupId: id }), { statusCode: 404 })
  })

  it(`sdk.groups.${network}: addFiles, removeFiles`, async () => {
    const { id } = await upload(network)
    const { id: groupId } = await groups.create({ name: 'members' })
    const members = async () => ids((await sdk.files[network].list().group(groupId)).files)
    assert.deepEqual(await groups.addFiles({ groupId, files: [id] }), [{ id, status: 'OK' }])
    assert.deepEqual(await members(), [id])
    assert.deepEqual(await groups.removeFiles({ groupId, files: [id] }), [{ id, status: 'OK' }])
    assert.deepEqual(await members(), [])
  })
}

function queue({ watched: sdk, plain }: Sdk): void {
  it('sdk.files.public: queue, deletePinRequest', async () => {
    const { files } = sdk
    const { id: older, cid } = await plain.upload.public.cid(`${await missingCid()}`)
    const { id: newer } = await plain.upload.public.cid(`${await missingCid()}`)
    assert.deepEqual(ids((await files.public.queue().cid(cid)).jobs), [older])
    assert.deepEqual(ids(await files.public.queue().sort('ASC').all()), [older, newer])
    assert.deepEqual(ids(await files.public.queue().sort('DSC').all()), [newer, older])
    const first = await files.public.queue().sort('ASC').pageLimit(1)
    const second = await files.public.queue().sort('ASC').pageToken(first.next_page_token)
    assert.deepEqual([ids(first.jobs), ids(second.jobs)], [[older], [newer]])
    assert.deepEqual((await files.public.queue().status('expired')).jobs, [])
    for (const id of [older, newer]) assert.equal(await files.public.deletePinRequest(id), 'OK')
    assert.deepEqual(await files.public.queue().all(), [])
  })
}
