/** Folders on a provider that Berth is asked to pin, and the check that all of their bytes have arrived. */
import assert from 'node:assert/strict'
import type { CID } from 'multiformats/cid'
import type { Storage } from '../../src/storage/port.ts'
import { type Provider, startProvider } from '../support/provider.ts'
import type { Random } from './seed.ts'

const READ_MS = 60_000

export interface Content {
  cid: CID
  files: Record<string, Uint8Array>
  bytes: number
}

export interface Source {
  provider: Provider
  contents: Content[]
}

/** Starts a provider with `count` folders of two to eight small files. */
export async function startSource(random: Random, count: number): Promise<Source> {
  const provider = await startProvider()
  const contents: Content[] = []
  for (let i = 0; i < count; i++) contents.push(await addFolder(provider, random, random.between(2, 8)))
  return { provider, contents }
}

/** Adds a folder of `count` files of up to 16 KiB. */
export async function addFolder(provider: Provider, random: Random, count: number): Promise<Content> {
  const files: Record<string, Uint8Array> = {}
  for (let i = 0; i < count; i++) files[`file-${i}`] = random.bytes(random.between(1, 16_384))
  const bytes = Object.values(files).reduce((sum, { length }) => sum + length, 0)
  return { cid: await provider.folder(files), files, bytes }
}

/** Reads every file from the storage's own blocks and compares it, byte by byte. */
export async function assertStored(storage: Storage, { cid, files }: Content): Promise<void> {
  for (const [path, expected] of Object.entries(files)) {
    const chunks: Uint8Array[] = []
    const signal = AbortSignal.timeout(READ_MS)
    for await (const chunk of storage.cat(cid, { path, signal })) chunks.push(chunk)
    assert.ok(Buffer.concat(chunks).equals(expected), `${cid}/${path} is not what was added`)
  }
}
