import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { uploadFileArray } from 'pinata'
import { block, carOf } from '../../integration/storage/cases/blocks.ts'
import { listen } from '../../support/http-server.ts'
import { until } from '../../support/processes.ts'
import { fileOf, NETWORKS, type Network, type Sdk, textFile } from './open.ts'

const TUS_BYTES = 91 * 1024 * 1024

export function describeUploads(berth: Sdk): void {
  for (const network of NETWORKS) describe(`sdk.upload.${network}`, () => onEither(network, berth))
  describe('sdk.upload.public', () => onPublic(berth))
  describe('sdk.upload.private', () => onPrivate(berth))
}

function onEither(network: Network, { watched: sdk, keyless, read }: Sdk): void {
  const upload = sdk.upload[network]

  it(`sdk.upload.${network}: file, with every option`, async () => {
    const bytes = randomBytes(100_000)
    const { id: group_id } = await sdk.groups[network].create({ name: 'of an upload' })
    const keyvalues = { kind: 'random' }
    const builder = upload.file(fileOf(bytes)).name('said name').keyvalues(keyvalues)
    const file = await builder.group(group_id).cidVersion('v1').streamable()
    const said = { name: 'said name', size: bytes.length, keyvalues, group_id, network }
    assert.partialDeepStrictEqual(file, { ...said, number_of_files: 1 })
    assert.equal(CID.parse(file.cid).version, 1)
    assert.deepEqual(await read(network, file.cid), bytes)
  })

  it(`sdk.upload.${network}: the same file again is a duplicate`, async () => {
    const bytes = randomBytes(100)
    const { id } = await upload.file(fileOf(bytes))
    assert.partialDeepStrictEqual(await upload.file(fileOf(bytes)), { id, is_duplicate: true })
  })

  it(`sdk.upload.${network}: json`, async () => {
    const content = { nested: { list: [1, 'two', null] }, unicode: 'é 🚢' }
    const file = await upload.json(content).name('settings.json')
    assert.equal(file.mime_type, 'application/json')
    const { data, contentType } = await sdk.gateways[network].get(file.cid)
    assert.deepEqual([data, contentType], [content, 'application/json'])
  })

  it(`sdk.upload.${network}: base64`, async () => {
    const bytes = randomBytes(1000)
    const file = await upload.base64(bytes.toString('base64'))
    assert.equal(file.size, 1000)
    assert.deepEqual(await read(network, file.cid), bytes)
  })

  it(`sdk.upload.${network}: url`, async () => {
    const bytes = randomBytes(1000)
    const file = await upload.url(`${await listen((_, res) => res.end(bytes))}/`)
    assert.deepEqual(await read(network, file.cid), bytes)
  })

  it(`sdk.upload.${network}: file with another key`, async () => {
    const resources = ['org:files:write' as const]
    const { JWT } = await sdk.keys.create({ keyName: 'uploads', permissions: { resources } })
    const file = await keyless.upload[network].file(fileOf(randomBytes(10))).key(JWT)
    assert.equal((await sdk.files[network].get(file.id)).cid, file.cid)
  })

  it(`sdk.upload.${network}: file by a signed URL, without a key, within its limits`, async () => {
    const said = { name: 'signed name', keyvalues: { from: 'a browser' } }
    const limits = { expires: 60, mimeTypes: ['text/*'], maxFileSize: 100 }
    const signed = await upload.createSignedURL({ ...limits, ...said })
    const other = keyless.upload[network]
    const file = await other.file(textFile('by a signed URL')).url(signed)
    assert.partialDeepStrictEqual(file, { ...said, network })
    assert.equal(`${await read(network, file.cid)}`, 'by a signed URL')
    const tooLong = other.file(textFile('x'.repeat(101))).url(signed)
    await assert.rejects(async () => await tooLong, { statusCode: 413 })
  })
}

function onPrivate({ plain, api }: Sdk): void {
  const folder = () => ['a.txt', 'b.txt'].map((path) => textFile(randomUUID(), path))
  const isPublic = async (cid: string) => (await plain.files.public.list().cid(cid)).files.length > 0
  const isPrivate = async (cid: string) => (await plain.files.private.list().cid(cid)).files.length > 0

  // The request for a private folder is byte for byte the same as for a public one.
  it('sdk.upload.private has no fileArray, and the function behind it sends no network', async () => {
    assert.ok(!('fileArray' in plain.upload.private))
    const forms: string[][] = []
    const legacyUploadUrl = await listen(async (req, res) => {
      const body = await buffer(req)
      const [boundary = ''] = /(?<=boundary=).*/.exec(req.headers['content-type'] ?? '') ?? []
      const { source, authorization } = req.headers
      forms.push([`${req.url}`, `${source}`, `${authorization}`, `${body}`.replaceAll(boundary, '')])
      res.end('{}')
    })
    const config = { ...plain.config, legacyUploadUrl: `${legacyUploadUrl}/` }
    const files = folder()
    for (const network of NETWORKS) await uploadFileArray(config, files, network)
    assert.deepEqual(forms[0], forms[1])
  })
  it('sdk.upload.private: a folder stays private by its URL, or by a key for private uploads', async () => {
    const resources = ['org:private_files:write']
    const made = await api.post('/v3/pinata/keys', { keyName: 'folders', permissions: { resources } })
    const legacyUploadUrl = `${plain.config?.legacyUploadUrl}`
    for (const config of [
      { ...plain.config, legacyUploadUrl: `${legacyUploadUrl}?network=private` },
      { ...plain.config, pinataJwt: made.body.JWT },
    ]) {
      const { cid } = await uploadFileArray(config, folder(), 'private')
      assert.deepEqual([await isPrivate(cid), await isPublic(cid)], [true, false])
    }
  })
  it('sdk.upload.private: a signed URL keeps a folder private, and refuses a public one', async () => {
    const sign = () =>
      plain.upload.private.createSignedURL({ expires: 60, mimeTypes: ['directory', 'text/*'] })
    const { cid } = await uploadFileArray(plain.config, folder(), 'private', { url: await sign() })
    assert.deepEqual([await isPrivate(cid), await isPublic(cid)], [true, false])
    const other = uploadFileArray(plain.config, folder(), 'public', { url: await sign() })
    await assert.rejects(other, { statusCode: 400 })
  })
}

function onPublic({ watched: sdk, node, read }: Sdk): void {
  // Only on this network: both work the same way, and each byte is sent several times.
  it('sdk.upload.public: file of 91 MiB, resumable', async () => {
    const bytes = randomBytes(TUS_BYTES)
    const file = await sdk.upload.public.file(fileOf(bytes, 'large.bin')).keyvalues({ way: 'tus' })
    assert.partialDeepStrictEqual(file, { size: TUS_BYTES, keyvalues: { way: 'tus' }, name: 'large.bin' })
    assert.ok((await read('public', file.cid)).equals(bytes))
  })
  it('sdk.upload.public: fileArray makes a folder', async () => {
    const contents = { 'a.txt': 'a', 'sub/b.txt': 'bb', 'sub/deep/c.txt': 'ccc' }
    const files = Object.entries(contents).map(([path, text]) => textFile(text, path))
    const said = { name: 'a folder', keyvalues: { kind: 'folder' } }
    const folder = await sdk.upload.public.fileArray(files).name(said.name).keyvalues(said.keyvalues)
    const facts = { number_of_files: 3, size: 6, mime_type: 'directory' }
    assert.partialDeepStrictEqual(folder, { ...said, ...facts })
    for (const [path, text] of Object.entries(contents))
      assert.equal((await sdk.gateways.public.get(`${folder.cid}/${path}`)).data, text)
  })

  it('sdk.upload.public: a CAR file', async () => {
    const content = await block(randomBytes(1000))
    const car = Buffer.from(carOf(content.cid, [content]))
    const file = await sdk.upload.public.file(fileOf(car, 'content.car')).car()
    assert.equal(file.cid, `${content.cid}`)
    assert.deepEqual(await read('public', file.cid), content.bytes)
  })

  it('sdk.upload.public: cid pins content from a node that has it', async () => {
    const bytes = randomBytes(1000)
    const cid = `${await node.file(bytes)}`
    const pin = await sdk.upload.public.cid(cid).name('pinned').peerAddress([node.multiaddr])
    const found = async () => (await sdk.files.public.list().cid(cid)).files[0]
    const file = await until('the pin is a file', found)
    assert.partialDeepStrictEqual(file, { id: pin.id, name: 'pinned', size: 1000 })
    assert.deepEqual(await read('public', cid), bytes)
  })
}
