/** The entries of a folder that a workspace keeps, read from the node's own blocks. */

import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { z } from 'zod'
import { badRequest, notFound } from '../errors.ts'
import { contentCid, like } from '../http/fields.ts'
import { badPageToken, pageOf, paging } from '../http/pages.ts'
import { type Route, routesOf } from '../http/route.ts'
import { network, pathId, text } from '../http/shapes.ts'
import { within } from '../lib/signals.ts'
import { isInnerShard } from '../storage/dag/inner-shards.ts'
import { pathFromShown, showName } from '../storage/dag/names.ts'
import { entryOf } from '../storage/dag/unixfs.ts'
import { type DagEntry, type DirectoryEntry, type Storage, StorageError } from '../storage/port.ts'
import { PINNED } from './held-content.ts'
import type { FileServices } from './services.ts'

const route = routesOf('Files')

/** Time limit for a page: a folder may be designed to be costly to walk. */
const POLL_MS = 30_000
const BLOCKS_AT_ONCE = 16
/** Limit for the characters of names on a page, which then ends early: a name may be as large as a block. */
const MAX_NAMES = 1_048_576
/** Maximum characters of a path: names have up to 255 bytes each, at some depth. */
const MAX_PATH = 4096

const entry = z.object({
  name: like('cover.png').describe('Percent-escaped if it is not UTF-8.'),
  cid: contentCid,
  type: z
    .enum(['file', 'directory', 'other'])
    .describe('`other`: a link, or content that is not a UnixFS file.'),
  size: z
    .number()
    .describe(
      'The size of a file in bytes. For other entries, the size stated by the folder, including the overhead of the DAG.',
    ),
})
type Entry = z.output<typeof entry>

export function entryRoutes({ prisma, storages, bounds }: FileServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/files/:network/:id/entries',
      id: 'listEntries',
      summary: 'List the entries of a folder',
      description:
        'The entries of a file that is a folder, or of a folder inside it, sorted by name unless the folder is sharded. Swaps are ignored.',
      scope: 'org:files:read',
      bound: 'downloads',
      params: z.object({ network, id: pathId }),
      query: z.object({
        path: text(MAX_PATH).default('').describe('A folder inside it, such as `images/small`.'),
        ...paging(50, 200),
      }),
      success: { description: 'A page of entries.', body: pageOf('entries', entry) },
      errors: [404, 503],
      async handle({ principal: { workspaceId }, params, query: { path, limit, pageToken }, signal }) {
        const offset = readOffset(pageToken)
        const where = { id: params.id, workspaceId, network: params.network, ...PINNED }
        const file = await prisma.file.findFirst({ where, select: { cidV1: true } })
        if (!file) throw notFound('There is no such file')
        const root = CID.parse(file.cidV1)
        const look = { storage: storages[params.network], signal: within(POLL_MS, signal) }
        const { entries, hasMore } = await bounds.run('dagDownloads', { cid: file.cidV1 }, async () => {
          const found = await readPage(look, await findFolder(look, root, path), { offset, limit })
          return { ...found, entries: await describe(look, found.entries) }
        })
        const next_page_token = hasMore ? `${offset + entries.length}` : ''
        return { body: { data: { entries, next_page_token } } }
      },
    }),
  ]
}

interface Look {
  storage: Storage
  signal: AbortSignal
}

/** A page token is the number of entries before the page. @throws ApiError 400 */
function readOffset(token = '0'): number {
  if (/^\d{1,12}$/.test(token)) return Number(token)
  throw badPageToken()
}

/**
 * The folder at a path, whose names may be in the format of `showName`.
 * @throws ApiError 404 if the path does not exist, 400 if it is not a folder.
 */
async function findFolder({ storage, signal }: Look, root: CID, path: string): Promise<CID> {
  const isMissing = (error: unknown) =>
    error instanceof StorageError && error.code === 'not_found' && path !== ''
  const raw = pathFromShown(path)
  const { cid, type } = await storage
    .resolve(root, { path, signal })
    .catch((error) => {
      if (raw === path || !isMissing(error)) throw error
      return storage.resolve(root, { path: raw, signal })
    })
    .catch((error) => {
      throw isMissing(error) ? notFound('path: does not exist') : asUnreadable(error)
    })
  if (type !== 'directory') throw badRequest('path: not a folder')
  const block = await storage.block(cid, { signal })
  const isInner = await isInnerShard(storage, { cid, block }, signal).catch((error) => {
    throw asUnreadable(error)
  })
  if (isInner)
    throw badRequest(`path: ${cid} is a shard within a folder, whose entries have no path from there`)
  return cid
}

async function readPage(
  { storage, signal }: Look,
  folder: CID,
  { offset, limit }: { offset: number; limit: number },
): Promise<{ entries: DirectoryEntry[]; hasMore: boolean }> {
  const entries: DirectoryEntry[] = []
  let index = 0
  let characters = 0
  try {
    for await (const one of storage.ls(folder, { signal })) {
      if (index++ < offset) continue
      if (entries.length === limit || characters > MAX_NAMES) return { entries, hasMore: true }
      entries.push(one)
      characters += one.name.length
    }
  } catch (error) {
    throw asUnreadable(error)
  }
  return { entries, hasMore: false }
}

/** Determines the type of each entry: its block tells, except for leaves. */
async function describe({ storage, signal }: Look, found: DirectoryEntry[]): Promise<Entry[]> {
  const entries: Entry[] = []
  // A folder may have the same entry under many names.
  const known = new Map<string, Promise<DagEntry>>()
  const one = async ({ name, cid, size }: DirectoryEntry): Promise<Entry> => {
    const listed = { name: showName(name), cid: `${cid}`, size }
    if (cid.code === raw.code) return { ...listed, type: 'file' }
    const found = known.get(listed.cid) ?? storage.block(cid, { signal }).then((block) => entryOf(cid, block))
    known.set(listed.cid, found)
    const { type, size: ofFile } = await found
    return { ...listed, type, size: ofFile ?? size }
  }
  for (let at = 0; at < found.length; at += BLOCKS_AT_ONCE)
    entries.push(...(await Promise.all(found.slice(at, at + BLOCKS_AT_ONCE).map(one))))
  return entries
}

/** A misleading folder is the client's fault, not the node's. */
const asUnreadable = (error: unknown): unknown =>
  error instanceof StorageError && error.code === 'invalid_object'
    ? badRequest(`path: ${error.message}`)
    : error
