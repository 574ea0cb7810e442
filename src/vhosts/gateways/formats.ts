/** Content for clients that check it themselves: one block, or a CAR of blocks. */

import * as dagPb from '@ipld/dag-pb'
import type { Request } from 'express'
import type { CID } from 'multiformats/cid'
import { ApiError, badRequest } from '../../errors.ts'
import { carHeader, carSection } from '../../storage/car.ts'
import type { DagEntry, Storage } from '../../storage/port.ts'
import { decodeUnixFs } from '../../storage/unixfs-node.ts'
import type { Representation } from './respond.ts'

export type Format = 'raw' | 'car'

/** The format that the client wants in place of the file itself: `?format=`, else `Accept`. @throws ApiError 400. */
export function askedFormat(req: Request, { searchParams }: URL): Format | undefined {
  const named = searchParams.get('format')
  if (named === 'raw' || named === 'car') return named
  if (named !== null) throw badRequest('format: must be raw or car')
  const [, accepted] = /\bapplication\/vnd\.ipld\.(raw|car)\b/.exec(req.get('accept') ?? '') ?? []
  return accepted as Format | undefined
}

/** A block as it is, of any codec. */
export async function blockRepresentation(
  storage: Storage,
  cid: CID,
  signal: AbortSignal,
): Promise<Representation> {
  const bytes = await storage.block(cid, { signal })
  return {
    etag: `"${cid}.raw"`,
    size: bytes.length,
    headers: {
      'Content-Type': 'application/vnd.ipld.raw',
      'Content-Disposition': `attachment; filename="${cid}.bin"`,
    },
    async *read(from, to) {
      yield bytes.subarray(from, to)
    },
  }
}

/**
 * A CAR of the whole DAG, or of what `dag-scope` says: `block`, the root alone; `entity`, the blocks of a file,
 * or those that list a directory.
 * @param names those of the path: there must be none.
 * @throws ApiError 400 for parameters that there are not, 501 for a part of a DAG of more than one block.
 */
export async function carRepresentation(
  storage: Storage,
  { cid, type }: DagEntry,
  names: string[],
  { searchParams }: URL,
  signal: AbortSignal,
): Promise<Representation> {
  const scope = searchParams.get('dag-scope') ?? 'all'
  if (!['all', 'entity', 'block'].includes(scope)) throw badRequest('dag-scope: must be all, entity or block')
  // A path or a range would make a CAR of some of the blocks of a DAG, and the store exports whole ones.
  if (names.length > 0) throw notImplemented('format: a CAR is made of a whole CID, not of a path below it')
  if (searchParams.has('entity-bytes')) throw notImplemented('entity-bytes: not supported; use Range')
  if ((searchParams.get('car-version') ?? '1') !== '1') throw badRequest('car-version: must be 1')
  const isWhole = scope === 'all' || (scope === 'entity' && type === 'file')
  const root = isWhole ? undefined : await storage.block(cid, { signal })
  if (root && scope === 'entity' && isSharded(cid, root)) {
    throw notImplemented('dag-scope: entity is not supported for a sharded directory')
  }
  return {
    // The order of the blocks is the store's own matter, so the tag is a weak one.
    etag: `W/"${cid}.car.${isWhole ? 'all' : 'block'}"`,
    headers: {
      'Content-Type': 'application/vnd.ipld.car; version=1; order=dfs; dups=n',
      'Content-Disposition': `attachment; filename="${cid}.car"`,
    },
    read: (_from, _to, signal) => (root ? carOfBlock(cid, root) : storage.exportCar(cid, { signal })),
  }
}

const notImplemented = (message: string) => new ApiError(501, 'not_implemented', message)

function isSharded(cid: CID, block: Uint8Array): boolean {
  if (cid.code !== dagPb.code) return false
  return decodeUnixFs(block)?.unixfs.type === 'hamt-sharded-directory'
}

async function* carOfBlock(cid: CID, bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield carHeader(cid)
  yield* carSection({ cid, bytes })
}
