import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import { createKuboStorage } from '../../src/storage/kubo.ts'
import type { Storage } from '../../src/storage/port.ts'
import { type Folder, walk } from './folder.ts'
import type { RealParts } from './real-parts.ts'
import { bytes, count } from './screen.ts'

/** Access to Berth's own IPFS node: its folder, offline, or Kubo's RPC API. */
export async function openStored(
  dataDir: string,
  parts: RealParts | undefined,
  stack: AsyncDisposableStack,
): Promise<Storage> {
  const stored = parts
    ? createKuboStorage({ apiUrl: parts.kuboUrl, network: 'public' })
    : createEmbeddedStorage({ dir: join(dataDir, 'ipfs', 'public'), network: 'public', offline: true })
  stack.defer(() => stored.stop())
  await stored.start()
  return stored
}

/**
 * Compares every file of a folder with the content under a CID, and checks that the content has no other file.
 * @throws Error naming the first file that differs.
 */
export async function compareFolder(options: {
  folder: Folder
  cid: string
  stored: Storage
  live: (text: () => string) => void
  signal: AbortSignal
}): Promise<{ files: number; bytes: number }> {
  const { folder, stored, live, signal } = options
  const cid = CID.parse(options.cid)
  if (!(await stored.isPinned(cid, { signal }))) throw new Error(`${cid} is not pinned`)
  const done = { files: 0, bytes: 0 }
  live(() => `${done.files} of ${count(folder.files, 'file')}, ${bytes(done.bytes)} are the same`)
  for await (const { path } of walk(folder.path)) {
    const expected = await readFile(join(folder.path, path))
    let offset = 0
    for await (const chunk of stored.cat(cid, { path, signal })) {
      if (!expected.subarray(offset, offset + chunk.length).equals(chunk)) {
        throw new Error(`${path} differs within the ${chunk.length} bytes from ${offset}`)
      }
      offset += chunk.length
    }
    if (offset !== expected.length) throw new Error(`${path} has ${offset} bytes, not ${expected.length}`)
    done.files++
    done.bytes += offset
  }
  const { files, size } = await stored.stat(cid, { signal })
  if (files !== done.files || size !== done.bytes) {
    throw new Error(
      `${count(files, 'file')} and ${size} bytes are stored, not ${done.files} and ${done.bytes}`,
    )
  }
  return done
}
