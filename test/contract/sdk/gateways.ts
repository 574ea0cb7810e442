import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import sharp from 'sharp'
import { until } from '../../support/processes.ts'
import { bytesOf, type Sdk, textFile } from './open.ts'

const RED = { width: 40, height: 20, channels: 3, background: '#f00' } as const
const PNG = (await sharp({ create: RED }).png().toBuffer()).toString('base64')

export function describeGateways({ watched: sdk, plain, gateway }: Sdk): void {
  describe('sdk.gateways.public', () => {
    it('sdk.gateways.public: get, convert', async () => {
      const { cid } = await plain.upload.public.file(textFile('read me'))
      assert.equal((await sdk.gateways.public.get(cid)).data, 'read me')
      const address = await sdk.gateways.public.convert(`ipfs://${cid}`)
      assert.equal(address, `https://${gateway}/ipfs/${cid}`)
      assert.equal(await (await fetch(address)).text(), 'read me')
    })

    it('sdk.gateways.public: get.optimizeImage applies all options together', async () => {
      const { cid } = await plain.upload.public.base64(PNG).name('red.png')
      const image = await sdk.gateways.public.get(cid).optimizeImage({
        width: 10,
        height: 10,
        dpr: 2,
        fit: 'cover',
        gravity: 'auto',
        quality: 80,
        format: 'webp',
        animation: false,
        sharpen: 1,
        onError: true,
        metadata: 'none',
      })
      assert.equal(image.contentType, 'image/webp')
      const { width, height } = await sharp(await bytesOf(image)).metadata()
      assert.deepEqual([width, height], [20, 20])
    })
  })

  describe('sdk.gateways.private', () => {
    it('sdk.gateways.private: get, createAccessLink', async () => {
      const { cid } = await plain.upload.private.file(textFile('secret'))
      assert.equal((await sdk.gateways.private.get(cid)).data, 'secret')
      const link = await sdk.gateways.private.createAccessLink({ cid, expires: 60 })
      assert.equal(await (await fetch(link)).text(), 'secret')
    })

    it('sdk.gateways.private returns nothing without a link, or with a forged one', async () => {
      const { cid } = await plain.upload.private.file(textFile('hidden'))
      const link = await sdk.gateways.private.createAccessLink({ cid, expires: 60 })
      const { origin, pathname } = new URL(link)
      for (const address of [`${origin}${pathname}`, `${origin}/ipfs/${cid}`, link.replace(/.$/, '!')]) {
        const response = await fetch(address)
        assert.ok([401, 403, 404].includes(response.status), `${response.status} ${address}`)
        assert.doesNotMatch(await response.text(), /hidden/)
      }
    })

    it('sdk.gateways.private returns nothing once the link has expired', async () => {
      const { cid } = await plain.upload.private.file(textFile('for a moment'))
      // Valid for two seconds: created again if they had passed before the request arrived.
      const link = await until('a link is created before it expires', () =>
        sdk.gateways.private.createAccessLink({
          cid,
          date: Math.floor(Date.now() / 1000) - 58,
          expires: 60,
        }),
      )
      await until('the link has expired', async () => (await fetch(link)).status === 403)
    })

    it('sdk.gateways.private: createAccessLink.optimizeImage links to the converted image', async () => {
      const { cid } = await plain.upload.private.base64(PNG).name('red.png')
      const link = await sdk.gateways.private
        .createAccessLink({ cid, expires: 60 })
        .optimizeImage({ width: 10, fit: 'scaleDown' })
      const { width, format } = await sharp(await (await fetch(link)).arrayBuffer()).metadata()
      assert.deepEqual([width, format], [10, 'png'])
    })

    it('sdk.gateways.private: get.optimizeImage returns the converted image', async () => {
      const { cid } = await plain.upload.private.base64(PNG).name('red.png')
      const image = await sdk.gateways.private.get(cid).optimizeImage({ width: 10, animation: true })
      assert.equal((await sharp(await bytesOf(image)).metadata()).width, 10)
    })
  })
}
