import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CID } from 'multiformats/cid'
import type { DirectoryEntry, Storage } from '../../storage/port.ts'
import { listingRepresentation } from './listing.ts'

const cid = CID.parse('bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku')

async function piecesOf(names: string[], { path = ['folder'], byCid = false } = {}): Promise<string[]> {
  const entries: DirectoryEntry[] = names.map((name) => ({ name, cid, size: 1 }))
  async function* ls() {
    yield* entries
  }
  const links = { here: `/ipfs/${path.join('/')}`, paths: '/ipfs', query: new URLSearchParams(), byCid }
  const page = listingRepresentation({ ls } as unknown as Storage, cid, { root: 'ipfs', names: path, links })
  const pieces: string[] = []
  for await (const piece of page.read(0, 0, new AbortController().signal))
    pieces.push(`${Buffer.from(piece)}`)
  return pieces
}

test('names larger than any URL are cut on a directory page, and are not linked', async () => {
  const names = [...Array<string>(20).fill('"'.repeat(1_000_000)), 'short']
  for (const byCid of [false, true]) {
    const page = (await piecesOf(names, { byCid })).join('')
    assert.ok(page.length < 1_000_000, `${page.length} characters`)
    assert.deepEqual(page.match(/href="\/ipfs\/folder\/[^"]*/g), ['href="/ipfs/folder/short'])
    assert.equal(page.match(/<tr><td>/g)?.length, names.length)
  }
})

test('a directory page is sent in small pieces, even at the end of a long path', async () => {
  const pieces = await piecesOf(Array<string>(1000).fill('name'), { path: Array<string>(7000).fill('a') })
  assert.ok(Math.max(...pieces.map(({ length }) => length)) < 200_000)
})
