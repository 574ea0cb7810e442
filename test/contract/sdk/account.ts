import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { pinnedFileCount, totalStorageUsage } from 'pinata'
import { createSdk } from '../../support/sdk.ts'
import { watch } from '../../support/watch.ts'
import type { Sdk } from './open.ts'

export function describeAccount({ watched: sdk, called, plain, upload, api, gateway }: Sdk): void {
  describe('sdk.keys', () => {
    it('sdk.keys: create, list, revoke', async () => {
      const name = randomUUID()
      const resources = ['org:files:read' as const]
      const key = await sdk.keys.create({ keyName: name, permissions: { resources }, maxUses: 5 })
      const list = () => sdk.keys.list().name(name)
      const count = async (keys: PromiseLike<unknown[]>) => (await keys).length
      assert.equal(await count(list().limitedUse(true).exhausted(false).revoked(false)), 1)
      assert.equal(await count(list().limitedUse(false)), 0)
      assert.equal(await count(list().exhausted(true)), 0)
      assert.equal(await count(list().offset(1)), 0)
      assert.equal(await count(list().all()), 1)
      const revoked = await sdk.keys.revoke([key.pinata_api_key])
      assert.deepEqual(revoked, [{ key: key.pinata_api_key, status: 'Revoked' }])
      assert.equal(await count(list().revoked(true)), 1)
    })
  })

  describe('account by SDK', () => {
    it('account by SDK: testAuthentication, setNewJwt, setNewHeaders', async () => {
      const welcome = { message: 'Congratulations! You are communicating with the Pinata API!' }
      assert.deepEqual(await sdk.testAuthentication(), welcome)
      const { watched: other } = watch(createSdk({ url: api.url, key: 'no key', gateway }), called)
      await assert.rejects(other.testAuthentication(), { statusCode: 401 })
      other.setNewJwt(api.key ?? '')
      other.setNewHeaders({ 'X-Request-Source': 'a test' })
      assert.deepEqual(await other.testAuthentication(), welcome)
    })

    it('account by SDK: totalStorageUsage, pinnedFileCount', async () => {
      const usage = async () => [await totalStorageUsage(plain.config), await pinnedFileCount(plain.config)]
      const [bytes = 0, files = 0] = await usage()
      await upload('public')
      assert.deepEqual(await usage(), [bytes + 1000, files + 1])
    })
  })
}
