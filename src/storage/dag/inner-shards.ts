/** Shards inside a sharded directory: they look like directories themselves, but no path finds their entries. */
import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import { ignoring } from '../../errors.ts'
import type { Storage } from '../port.ts'
import { follow } from './path.ts'
import { decodeUnixFs } from './unixfs-node.ts'

/** Entries that are resolved by name. One in 256 resolves from an inner shard by chance. */
const ENTRIES_CHECKED = 4

/** True for a shard whose entries are found only from the root of their directory. @param block the CID's block. */
export async function isInnerShard(
  storage: Pick<Storage, 'block' | 'ls'>,
  { cid, block }: { cid: CID; block: Uint8Array },
  signal: AbortSignal,
): Promise<boolean> {
  const node = cid.code === dagPb.code ? decodeUnixFs(block) : null
  if (node?.unixfs.type !== 'hamt-sharded-directory') return false
  const read = (one: CID) => storage.block(one, { signal })
  let checked = 0
  for await (const { name } of storage.ls(cid, { signal })) {
    if (!(await isFound(cid, name, read, signal))) return true
    if (++checked === ENTRIES_CHECKED) return false
  }
  return false
}

async function isFound(cid: CID, name: string, read: (cid: CID) => Promise<Uint8Array>, signal: AbortSignal) {
  return (await follow(cid, [name], read, signal).catch(ignoring('not_found'))) !== undefined
}
