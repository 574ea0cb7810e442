import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { until } from '../../support/processes.ts'
import { bytesOf, type Sdk, textFile } from './open.ts'

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

export function describeGateways({ watched: sdk, plain, gateway }: Sdk): void {
  describe('sdk.gateways.public', () => {
    it('sdk.gateways.public: get, convert', async () => {
      const { cid } = await plain.upload.public.file(textFile('read me'))
      assert.equal((await sdk.gateways.public.get(cid)).data, 'read me')
      const address = await sdk.gateways.public.convert(`ipfs://${cid}`)
      assert.equal(address, `https://${gateway}/ipfs/${cid}`)
      assert.equal(await (await fetch(address)).text(), 'read me')
    })

    it('sdk.gateways.public: get.optimizeImage serves the image as it is', async () => {
      const { cid } = await plain.upload.public.base64(PIXEL).name('pixel.png')
      const image = await sdk.gateways.public.get(cid).optimizeImage({ width: 10, format: 'webp' })
      assert.equal((await bytesOf(image)).toString('base64'), PIXEL)
    })
  })

  describe('sdk.gateways.private', () => {
    it('sdk.gateways.private: get, createAccessLink', async () => {
      const { cid } = await plain.upload.private.file(textFile('secret'))
      assert.equal((await sdk.gateways.private.get(cid)).data, 'secret')
      const link = await sdk.gateways.private.createAccessLink({ cid, expires: 60 })
      assert.equal(await (await fetch(link)).text(), 'secret')
    })

    it('sdk.gateways.private gives nothing without a link, nor by a forged one', async () => {
      const { cid } = await plain.upload.private.file(textFile('hidden'))
      const link = await sdk.gateways.private.createAccessLink({ cid, expires: 60 })
      const { origin, pathname } = new URL(link)
      for (const address of [`${origin}${pathname}`, `${origin}/ipfs/${cid}`, link.replace(/.$/, '!')]) {
        const response = await fetch(address)
        assert.ok([401, 403, 404].includes(response.status), `${response.status} ${address}`)
        assert.doesNotMatch(await response.text(), /hidden/)
      }
    })

    it('sdk.gateways.private gives nothing once the link has expired', async () => {
      const { cid } = await plain.upload.private.file(textFile('for a moment'))
      const date = Math.floor(Date.now() / 1000) - 58
      const link = await sdk.gateways.private.createAccessLink({ cid, date, expires: 60 })
      await until('the link has expired', async () => (await fetch(link)).status === 403, 10_000)
    })

    it('sdk.gateways.private: createAccessLink.optimizeImage serves the image as it is', async () => {
      const { cid } = await plain.upload.private.base64(PIXEL).name('pixel.png')
      const link = await sdk.gateways.private
        .createAccessLink({ cid, expires: 60 })
        .optimizeImage({ width: 10 })
      assert.equal(Buffer.from(await (await fetch(link)).arrayBuffer()).toString('base64'), PIXEL)
    })
  })
}
