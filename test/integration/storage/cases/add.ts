import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CID } from 'multiformats/cid'
import type { AddEntry, FileRange } from '../../../../src/storage/port.ts'
import { collect, file, randomBytes, texts } from '../content.ts'
import { type Cases, failsWith, MIB, pinned } from './context.ts'

/** Imports of files. */
export function addCases({ storage }: Cases): void {
  const { signal } = new AbortController()
  const cat = (cid: CID, range: FileRange = {}) => collect(storage().cat(cid, { ...range, signal }))

  describe('add', () => {
    test('add creates the CIDs that Kubo states for the profile, at chunk boundaries', async () => {
      const vectors = [
        [MIB, 'bafkreiacndfy443ter6qr2tmbbdhadvxxheowwf75s6zehscklu6ezxmta'],
        [MIB + 1, 'bafybeigmix7t42i6jacydtquhet7srwvgpizfg7gjbq7627d35mjomtu64'],
      ] as const
      for (const [size, expected] of vectors) {
        const added = await storage().add(file('chunk-v1-seed', size), { signal })
        assert.deepEqual([`${added.cid}`, added.size], [expected, size])
        assert.deepEqual(await cat(added.cid), await collect(randomBytes('chunk-v1-seed', size)))
      }
      const hello = await storage().add(texts({ 'hello.txt': 'hello world' }), { signal })
      assert.equal(`${hello.cid}`, 'bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e')
    })

    test('add shards a directory exactly where Kubo does', async () => {
      const directories = [
        [21, 'bafybeic3h7rwruealwxkacabdy45jivq2crwz6bufb5ljwupn36gicplx4'],
        [22, 'bafybeiegvuterwurhdtkikfhbxcldohmxp566vpjdofhzmnhv6o4freidu'],
      ] as const
      for (const [lastNameLength, expected] of directories) {
        const names = await vectorNames('hamt-unixfs-v1-2025', 4766, 11, lastNameLength)
        const { cid } = await storage().add(texts(Object.fromEntries(names.map((path) => [path, 'x']))), {
          signal,
        })
        assert.equal(`${cid}`, expected)
        const stat = await storage().stat(cid, { signal })
        assert.deepEqual(stat, { size: 4766, files: 4766, mimeType: 'directory' })
        assert.equal(`${await cat(cid, { path: names[4000] })}`, 'x')
      }
    })

    test('add counts nested directories and accepts names that end in a backslash, like `ipfs add`', async () => {
      const folder = 'a folder with a long name, '.repeat(8)
      const many = Array.from({ length: 1200 }, (_, i) => [`dir/${folder}${i}/f`, 'x'])
      const wide = await storage().add(texts({ ...Object.fromEntries(many), z: 'z' }), { signal })
      assert.equal(`${wide.cid}`, 'bafybeicfystkv2bkjjwxdob6pkvhtqkh5elb6wnwiaidcycazxz7vomllu')
      const names = { 'a\\/b': '1', 'c\\': '2', 'd\\/e\\/f': '3' }
      const odd = await storage().add(texts(names), { signal })
      assert.equal(`${odd.cid}`, 'bafybeiffjgiprlv4xeshtgmjqfiv2aywqmxmtm75fg67oik7smqqh6abiq')
    })

    test('add creates the same CIDv0s as `ipfs add` under unixfs-v0-2015', async () => {
      const add = (entries: AsyncIterable<AddEntry>) => storage().add(entries, { cidVersion: 0, signal })
      const files = [
        [0, 'QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH'],
        [11, 'QmQmAPVciewwLLdUMMmKrZ3AsTYwwXV3jgV547FnrCng8e'],
        [MIB / 4, 'Qmf1vVv3YDA96rVeYJTvArQ4GLhqCo6C6PUK2U8LiDegT1'],
        [MIB / 4 + 1, 'QmUzWie6rGSdt3tVa1jnHtWq7YxTMUaYBhoakGNRxPmZV5'],
        [175 * (MIB / 4), 'QmZNstdpcmabB3zesMmj67FyzDLNR42C7CmMKtKrrQtJC9'],
      ] as const
      for (const [size, expected] of files) {
        const { cid } = await add(file('v0', size))
        assert.equal(`${cid}`, expected)
        assert.equal(await storage().isPinned(cid.toV1(), { signal }), true)
        assert.deepEqual(await cat(cid), await collect(randomBytes('v0', size)))
      }
      const { cid } = await add(texts({ 'a/b.txt': 'b', 'ü c.txt': 'c' }))
      assert.equal(`${cid}`, 'QmZDzWDUDZADWh7czETAXwUGUZe6eeUDtGPVTtAyQDRp6s')
      const name = 'a file with a long name, '.repeat(9)
      const many = Array.from({ length: 1200 }, (_, i) => [`${name}${i}.txt`, 'x'])
      const wide = await add(texts(Object.fromEntries(many)))
      assert.equal(`${wide.cid}`, 'QmS4JeDBztwpzHYkSHDVKVqCWdJJCwPzQTpPnXm3ufcL7a')
    })

    test('add accepts an empty file and no file at all', async () => {
      const { cid, size } = await storage().add(texts({ empty: '' }), { signal })
      assert.equal(size, 0)
      assert.equal(`${cid}`, 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku')
      assert.equal((await cat(cid)).length, 0)
      await assert.rejects(storage().add(texts({}), { signal }), failsWith('invalid_object'))
    })

    test('add creates a directory for one entry with a slash, and pins all entries', async () => {
      const single = await storage().add(texts({ 'docs/readme.txt': 'read me' }), { signal })
      assert.equal(`${await cat(single.cid, { path: 'docs/readme.txt' })}`, 'read me')
      assert.equal(await storage().isPinned(single.cid, { signal }), true)
      assert.ok((await pinned(storage())).includes(`${single.cid}`))
    })

    test('add can keep the folder that has all entries, without the folder around it', async () => {
      for (const cidVersion of [0, 1] as const) {
        const entries = texts({ 'a folder/b.txt': `b${cidVersion}`, 'a folder/c/d': 'd' })
        const before = await pinned(storage())
        const { cid } = await storage().add(entries, { cidVersion, folder: () => 'a folder', signal })
        assert.equal(cid.version, cidVersion)
        assert.equal(`${await cat(cid, { path: 'c/d' })}`, 'd')
        const after = await pinned(storage())
        assert.deepEqual(
          after.filter((one) => !before.includes(one)),
          [`${cid.toV1()}`],
        )
      }
    })

    test('add ends promptly when aborted, even while the source hangs', async () => {
      const controller = new AbortController()
      async function* hanging() {
        yield Buffer.from('the beginning')
        setImmediate(() => controller.abort())
        await new Promise(() => {})
      }
      const entries = (async function* () {
        yield { path: 'f', content: hanging() }
      })()
      const options = { signal: controller.signal }
      await assert.rejects(storage().add(entries, options), failsWith('aborted'))
      const second = new AbortController()
      setTimeout(() => second.abort(), 50)
      const never: AsyncIterable<Uint8Array> = {
        [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
      }
      await assert.rejects(storage().importCar(never, { signal: second.signal }), failsWith('aborted'))
    })

    test('add with a source that fails leaves no pin', async () => {
      const before = await pinned(storage())
      async function* broken() {
        yield* file('broken', 3 * MIB)
        throw new Error('the upload broke off')
      }
      await assert.rejects(storage().add(broken(), { signal }))
      assert.deepEqual((await pinned(storage())).sort(), before.sort())
    })
  })
}

/** The file names of Kubo's directory vectors. */
async function vectorNames(
  seed: string,
  count: number,
  length: number,
  lastLength: number,
): Promise<string[]> {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz01234567890-_'
  const bytes = await collect(randomBytes(seed, MIB))
  return Array.from({ length: count }, (_, i) => {
    const name = bytes.subarray(i * length, i * length + (i === count - 1 ? lastLength : length))
    return Array.from(name, (byte) => alphabet[byte % alphabet.length]).join('')
  })
}
