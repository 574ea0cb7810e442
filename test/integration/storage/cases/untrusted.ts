import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { type Cases, STALL_MS } from './context.ts'

/** Hostile DAGs. */
export function untrustedDagCases({ storage, provider }: Cases): void {
  const { signal } = new AbortController()

  const put = async (bytes: Uint8Array, code: number = dagPb.code): Promise<CID> => {
    const cid = CID.createV1(code, await sha256.digest(bytes))
    await provider().node.call('putBlock', `${cid}`, bytes)
    return cid
  }
  const putNode = (unixfs: UnixFS, links: [name: string, cid: CID][] = []) => {
    const Links = links.map(([Name, Hash]) => ({ Name, Hash, Tsize: 1 }))
    return put(dagPb.encode(dagPb.prepare({ Data: unixfs.marshal(), Links })))
  }
  const putLeaf = (size: number) => put(new Uint8Array(size).fill(7), raw.code)
  const pinAndStat = async (cid: CID) => {
    await storage().pin(cid, { origins: [provider().address], stallMs: STALL_MS, signal })
    return storage().stat(cid, { signal: AbortSignal.timeout(60_000) })
  }

  describe('hostile DAGs', () => {
    test('directories with more paths than can be walked are still measured', async () => {
      let cid = await putLeaf(3)
      const depth = { exact: 10, endless: 60 }
      for (let level = 1; level <= depth.endless; level++) {
        const links: [string, CID][] = [
          ['a', cid],
          ['b', cid],
        ]
        cid = await putNode(new UnixFS({ type: 'directory' }), links)
        if (level !== depth.exact) continue
        assert.deepEqual(await pinAndStat(cid), { size: 3072, files: 1024, mimeType: 'directory' })
      }
      const endless = { size: Number.MAX_SAFE_INTEGER, files: 2 ** 31 - 1, mimeType: 'directory' }
      assert.deepEqual(await pinAndStat(cid), endless)
    })

    test('a file has its actual size, whatever it declares', async () => {
      const leaf = await putLeaf(1_000_000)
      for (const declared of [0n, 5n, 1_000_001n, 2n ** 62n, 2n ** 63n]) {
        const file = await putNode(new UnixFS({ type: 'file', blockSizes: [declared, declared] }), [
          ['', leaf],
          ['', leaf],
        ])
        const { size, files } = await pinAndStat(file)
        assert.deepEqual([size, files], [2_000_000, 1], `declared ${declared}`)
        const folder = await putNode(new UnixFS({ type: 'directory' }), [
          ['file', file],
          ['leaf', leaf],
        ])
        assert.deepEqual(await pinAndStat(folder), { size: 3_000_000, files: 2, mimeType: 'directory' })
      }
    })
  })
}
