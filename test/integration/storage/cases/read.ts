import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CID } from 'multiformats/cid'
import type { FileRange } from '../../../../src/storage/port.ts'
import { collect, file, randomBytes, texts } from '../content.ts'
import { type Cases, failsWith, MIB, STALL_MS } from './context.ts'

/** Content, and its description. */
export function readCases({ storage, provider }: Cases): void {
  const { signal } = new AbortController()
  const cat = (cid: CID, range: FileRange = {}) => collect(storage().cat(cid, { ...range, signal }))

  describe('cat and stat', () => {
    test('cat reads ranges', async () => {
      const { cid } = await storage().add(file('ranges', 5 * MIB + 77), { signal })
      const whole = await collect(randomBytes('ranges', 5 * MIB + 77))
      const ranges = [
        [0, 10],
        [MIB - 5, 10],
        [MIB, MIB],
        [3 * MIB + 1, 2 * MIB],
        [5 * MIB, 1000],
        [5 * MIB + 77, 5],
        [9 * MIB, 5],
        [7, 0],
        [123, undefined],
      ] as const
      for (const [offset, length] of ranges) {
        const expected = whole.subarray(offset, length === undefined ? undefined : offset + length)
        assert.deepEqual(await cat(cid, { offset, length }), expected, `${offset}+${length}`)
      }
    })

    test('stat returns sizes, numbers of files and MIME types', async () => {
      const binary = await storage().add(file('stat', 2 * MIB), { signal })
      const text = await storage().add(texts({ 'a.txt': 'plain text, ünïcode' }), { signal })
      const pdf = await storage().add(texts({ report: '%PDF-1.7\n' }), { signal })
      const tree = await storage().add(texts({ 'a/b/c.txt': '123', 'a/d.txt': '45', 'e.txt': '6' }), {
        signal,
      })
      const stat = (cid: CID) => storage().stat(cid, { signal })
      assert.deepEqual(await stat(binary.cid), {
        size: 2 * MIB,
        files: 1,
        mimeType: 'application/octet-stream',
      })
      assert.deepEqual(await stat(text.cid), { size: text.size, files: 1, mimeType: 'text/plain' })
      assert.deepEqual(await stat(pdf.cid), { size: pdf.size, files: 1, mimeType: 'application/pdf' })
      assert.deepEqual(await stat(tree.cid), { size: 6, files: 3, mimeType: 'directory' })
      const withEmpty = await storage().add(texts({ 'd/empty': '', 'd/full': '1' }), { signal })
      assert.deepEqual(await stat(withEmpty.cid), { size: 1, files: 2, mimeType: 'directory' })
      const empty = await storage().add(texts({ empty: '' }), { signal })
      // The result of adding has the same values, without another call.
      for (const { cid, ...said } of [binary, text, pdf, tree, withEmpty, empty])
        assert.deepEqual(said, await stat(cid))
    })

    test('cat and stat never use the network', async () => {
      const near = CID.parse(await provider().node.call('addTexts', { 'near.txt': 'pinned here' }))
      const far = CID.parse(await provider().node.call('addTexts', { 'far.txt': 'only at the provider' }))
      await storage().pin(near, { origins: [provider().address], stallMs: STALL_MS, signal }) // so that the provider is connected
      await assert.rejects(cat(far), failsWith('not_found'))
      await assert.rejects(storage().stat(far, { signal }), failsWith('not_found'))
      await assert.rejects(cat(near, { path: 'no/such/file' }), failsWith('not_found'))
    })

    test('cat rejects a directory', async () => {
      const { cid } = await storage().add(texts({ 'a/b': '1', c: '2' }), { signal })
      await assert.rejects(cat(cid), failsWith('invalid_object'))
    })

    test('cat reads an identity CID, which contains its own bytes', async () => {
      const cid = CID.parse('bafkqaddimvwgy3zao5xxe3debi')
      assert.equal(`${await cat(cid)}`, 'hello world\n')
    })
  })
}
