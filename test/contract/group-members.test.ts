/** Files in groups, on both networks. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { missingCid, openContext } from './context.ts'
import { NETWORKS, type Network, store } from './stored.ts'

const NO_GROUP = 'There is no such group'
const NO_FILE = 'There is no such file'

const { workspace } = await openContext()
const { api } = await workspace()
const stranger = await workspace()
const createGroup = async (network: Network, client = api): Promise<string> =>
  (await client.post(`/v3/groups/${network}`, { name: 'group' })).body.data.id
const member = (network: Network, group: string, file: string) => `/v3/groups/${network}/${group}/ids/${file}`

for (const network of NETWORKS) {
  const elsewhere = network === 'public' ? 'private' : 'public'
  let stored = 0
  const createFile = async (client = api): Promise<string> =>
    (await store(client, network, `${network} member ${stored++}`)).id
  const groupOf = async (file: string) => (await api.get(`/v3/files/${network}/${file}`)).body.data.group_id
  const add = (group: string, file: string, client = api) => client.put(member(network, group, file))
  const remove = (group: string, file: string, client = api) => client.delete(member(network, group, file))

  describe(`a ${network} file`, () => {
    it(`a ${network} file can be added to a group and removed repeatedly`, async () => {
      const [group, file] = [await createGroup(network), await createFile()]
      for (let i = 0; i < 2; i++) {
        const { status, body } = await add(group, file)
        assert.deepEqual([status, body], [200, { data: null }])
        assert.equal(await groupOf(file), group)
      }
      const { files } = (await api.get(`/v3/files/${network}`, { group })).body.data
      assert.deepEqual(
        files.map(({ id }: { id: string }) => id),
        [file],
      )
      for (let i = 0; i < 2; i++) {
        const { status, body } = await remove(group, file)
        assert.deepEqual([status, body], [200, { data: null }])
        assert.equal(await groupOf(file), null)
      }
    })
    it(`a ${network} file is in one group at most: adding it to another moves it`, async () => {
      const [first, second] = [await createGroup(network), await createGroup(network)]
      const file = await createFile()
      await add(first, file)
      await add(second, file)
      assert.equal(await groupOf(file), second)
      assert.equal((await remove(first, file)).status, 200)
      assert.equal(await groupOf(file), second, 'it had already left the first group')
    })
    it(`a ${network} file added to several groups at once is in exactly one`, async () => {
      const groups = await Promise.all(Array.from({ length: 6 }, () => createGroup(network)))
      const file = await createFile()
      const replies = await Promise.all(groups.map((group) => add(group, file)))
      assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
      assert.ok(groups.includes(await groupOf(file)))
    })
    it(`adding a ${network} file to a group changes nothing else`, async () => {
      const group = await createGroup(network)
      const details = { name: 'kept', keyvalues: { a: '1' } }
      const { id } = await store(api, network, `${network} keeps all else`, details)
      const before = (await api.get(`/v3/files/${network}/${id}`)).body.data
      await add(group, id)
      assert.deepEqual((await api.get(`/v3/files/${network}/${id}`)).body.data, {
        ...before,
        group_id: group,
      })
    })
  })

  describe(`membership of ${network} groups`, async () => {
    const group = await createGroup(network)
    it(`adding a ${network} file returns 404 with a group or file from elsewhere`, async () => {
      const [file, deleted] = [await createFile(), await createFile()]
      await api.delete(`/v3/files/${network}/${deleted}`)
      const { record } = await api.pin({ cid: `${await missingCid()}` })
      const { id: elsewhereFile } = await store(api, elsewhere, `not for ${network}`)
      for (const other of [deleted, record.id, elsewhereFile, await createFile(stranger.api)])
        for (const change of [add, remove]) assertError(await change(group, other), 404, NO_FILE)
      for (const other of [await createGroup(elsewhere), await createGroup(network, stranger.api)])
        for (const change of [add, remove]) assertError(await change(other, file), 404, NO_GROUP)
    })
    it(`deleting a ${network} group ends its memberships`, async () => {
      const [doomed, member] = [await createGroup(network), await createFile()]
      await add(doomed, member)
      assert.equal((await api.delete(`/v3/groups/${network}/${doomed}`)).status, 200)
      assert.equal(await groupOf(member), null)
      assertError(await remove(doomed, member), 404, NO_GROUP)
    })
  })
}
