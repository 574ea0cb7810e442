/** Files: pinned content. Everything here is read from PostgreSQL; no response waits for an IPFS node. */

import { z } from 'zod'
import type { Queryable } from '../db/pool.ts'
import { FILE_COLUMNS, findFile, updateFile } from '../db/statements/files.ts'
import { escapeLike } from '../db/statements/statement.ts'
import { badRequest, notFound } from '../errors.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import { type Route, routesOf } from '../http/route.ts'
import { cid, network, nothing, oneOrMore, optionalName, order, pathId, text } from '../http/shapes.ts'
import type { Network } from '../storage/port.ts'
import { canonicalCid, parseCid } from './cid.ts'
import { keyvaluesFilter, keyvaluesPatch, MAX_PAIRS, mergeFilters, TOO_MANY_PAIRS } from './keyvalues.ts'
import { isInManyNames, type NameSample, watchNameIndex, wordsToLookUp } from './name-index.ts'
import { removal } from './remove.ts'
import type { FileServices } from './services.ts'
import { type FileRecord, fileRecord } from './uploads/keep.ts'
import { findUploadedFile } from './uploads/tus-rows.ts'

/** A union reports the message of its last option. */
const ID_OR_NULL = 'must be a UUID or null'

const fileQuery = z.object({
  name: text(255)
    .optional()
    .describe(
      'Part of the name, case-insensitive. Without three letters or digits in a row, it matches only the beginning of names.',
    ),
  group: z
    .union([z.literal('null'), z.uuid(ID_OR_NULL).toLowerCase()], ID_OR_NULL)
    .optional()
    .describe('A group id, or `null` for files in no group.'),
  mimeType: text(255).optional(),
  cid: cid.optional().describe('Only this CID, in any spelling.'),
  cidPending: z
    .enum(['true', 'false'])
    .optional()
    .describe('`true`: only files that still wait for a CID; there are none.'),
  keyvalues: keyvaluesFilter.describe('`keyvalues[<key>]=<value>`: all pairs must match.'),
  metadata: keyvaluesFilter.describe('The same as `keyvalues`.'),
  order: order.default('DESC').describe('`ASC` or `DESC` by age.'),
  ...paging(10, 1000),
})

/** In the year 5138. A number with more digits was probably meant in milliseconds. */
const MAX_UNIX_SECONDS = 99_999_999_999
export const NOT_SECONDS = 'must be a Unix time in seconds'

/** When a file is to be deleted. */
export const expiresAt = z
  .int(NOT_SECONDS)
  .min(0, 'must be in the future')
  .max(MAX_UNIX_SECONDS, NOT_SECONDS)
  .refine((seconds) => seconds * 1000 > Date.now(), 'must be in the future')

/** `PUT /v3/files/{network}/{id}`: absent fields stay unchanged. */
const fileChanges = z
  .object({
    name: optionalName(255)
      .nullable()
      .transform((name) => name || null)
      .optional()
      .describe('`null` or empty: no name.'),
    keyvalues: keyvaluesPatch
      .optional()
      .describe('Merged by key into the existing pairs, 10 at most; `null` removes a pair.'),
    expires_at: expiresAt
      .nullable()
      .optional()
      .describe('When to delete it, to within minutes: a Unix time in seconds. `null`: never.'),
  })
  .refine(
    (changes) => Object.values(changes).some((value) => value !== undefined),
    'must have a name, keyvalues or expires_at',
  )
  .meta(oneOrMore('name', 'keyvalues', 'expires_at'))
type FileChanges = z.output<typeof fileChanges>

const route = routesOf('Files')
const PATH = '/v3/files/:network/:id'
const MISSING = 'There is no such file'
const params = z.object({ network, id: pathId })
const one = z.object({ data: fileRecord })

/** Files on both networks. A pin request becomes a file once it is pinned. */
export function fileRoutes(services: FileServices): Route[] {
  const { pool, prisma, searches } = services
  const nameIndex = watchNameIndex(pool)
  return [
    route({
      method: 'get',
      path: '/v3/files/:network',
      id: 'listFiles',
      summary: 'List files',
      scope: 'org:files:read',
      params: z.object({ network }),
      query: fileQuery,
      success: { description: 'A page of files.', body: pageOf('files', fileRecord) },
      async handle({ principal, params, query, signal }) {
        const { limit, pageToken, cidPending, cid, group, keyvalues, metadata, ...filter } = query
        const canonical = cid === undefined ? undefined : canonicalCid(parseCid(cid))
        const asked = {
          ...filter,
          network: params.network,
          group: group === 'null' ? null : group,
          canonical,
          keyvalues: mergeFilters(keyvalues, metadata),
        }
        const isSearch = asked.name !== undefined || asked.keyvalues !== null
        const page = await readPage({ limit, pageToken }, async (cursor) => {
          if (cidPending === 'true') return []
          const list = (db: Queryable) =>
            listFiles(db, principal.workspaceId, { ...asked, ...cursor }, nameIndex)
          return isSearch ? searches.run(principal, signal, list) : list(pool)
        })
        return { body: toPage('files', page) }
      },
    }),
    route({
      method: 'get',
      path: PATH,
      id: 'getFile',
      summary: 'Get a file',
      scope: 'org:files:read',
      params,
      success: { description: 'The file.', body: one },
      errors: [404],
      async handle({ principal, params }) {
        const { workspaceId } = principal
        const { id, network } = params
        let file = await findFile.first(pool, id, workspaceId, network)
        const older = file ? undefined : await findUploadedFile(prisma, workspaceId, id)
        if (older) file = await findFile.first(pool, older, workspaceId, network)
        if (!file) throw notFound(MISSING)
        return { body: { data: file } }
      },
    }),
    route({
      method: 'put',
      path: PATH,
      id: 'updateFile',
      summary: "Change a file's name, metadata or expiry",
      description: 'Omitted fields stay unchanged.',
      scope: 'org:files:write',
      params,
      body: fileChanges,
      success: { description: 'The updated file.', body: one },
      errors: [404],
      async handle({ principal, params, body }) {
        const file = await changeFile(pool, principal.workspaceId, params.network, params.id, body)
        if (!file) throw notFound(MISSING)
        return { body: { data: file } }
      },
    }),
    route({
      method: 'delete',
      path: PATH,
      id: 'deleteFile',
      summary: 'Delete a file',
      description: 'The file is gone at once; an operation unpins its content unless another file keeps it.',
      scope: 'org:files:write',
      params,
      success: { description: 'Deleted.', body: nothing },
      errors: [404],
      operation: true,
      handle: removal(services, 'pinned', MISSING),
    }),
  ]
}

interface FileFilter {
  network: Network
  /** Part of the name. */
  name?: string | undefined
  /** A group's id, or `null` for files in none. */
  group?: string | null | undefined
  mimeType?: string | undefined
  canonical?: string | undefined
  /** Pairs that must all match, as JSON. */
  keyvalues: string | null
  after?: string | undefined
  order: 'ASC' | 'DESC'
  limit: number
}

/**
 * Changes a file.
 * @returns the updated file; undefined if the workspace has no such file.
 * @throws ApiError 400, without changes, if it would have too many pairs.
 */
export async function changeFile(
  db: Queryable,
  workspaceId: string,
  network: Network,
  id: string,
  { name, keyvalues = {}, expires_at }: FileChanges,
): Promise<FileRecord | undefined> {
  const pairs = Object.entries(keyvalues)
  const removed = pairs.filter(([, value]) => value === null).map(([key]) => key)
  const file = await updateFile.first(
    db,
    id,
    workspaceId,
    network,
    name !== undefined,
    name ?? null,
    JSON.stringify(keyvalues),
    removed,
    expires_at !== undefined,
    expires_at ?? null,
    MAX_PAIRS,
  )
  if (!file && (await findFile.first(db, id, workspaceId, network))) {
    throw badRequest(`keyvalues: ${TOO_MANY_PAIRS}`)
  }
  return file
}

/** Files to check in list order before using the index on names. */
const LOOKED_AT = 1000

/**
 * A page of files by age. The statement contains only the requested filters, so each combination has its own plan.
 * `removed_at` is NULL in every row; ordering by it too matches the index of the list.
 * @param nameIndex a sample of names, if the index on parts of names exists: it contains parts of three letters or
 *   more. Shorter parts are looked up among the beginnings of names, which also have an index.
 */
export async function listFiles(
  db: Queryable,
  workspaceId: string,
  { name, order, limit, ...filter }: FileFilter,
  nameIndex: () => Promise<NameSample | undefined>,
): Promise<FileRecord[]> {
  const values: unknown[] = [workspaceId, filter.network]
  const read = async (text: string) => (await db.query<FileRecord>(text, values)).rows
  const where = [`workspace_id = $1`, `network = $2`, `status = 'pinned'`, `removed_at IS NULL`]
  const add = (condition: (placeholder: string) => string, value: unknown) => {
    values.push(value)
    where.push(condition(`$${values.length}`))
  }
  const beyond = order === 'ASC' ? '>' : '<'
  const page = (limit: number) => `ORDER BY removed_at ${order}, id ${order} LIMIT ${limit}`
  if (filter.group === null) where.push('group_id IS NULL')
  else if (filter.group !== undefined) add((p) => `group_id = ${p}`, filter.group)
  if (filter.mimeType !== undefined) add((p) => `mime_type = ${p}`, filter.mimeType)
  if (filter.canonical !== undefined) add((p) => `cid_v1 = ${p}`, filter.canonical)
  if (filter.keyvalues !== null) add((p) => `keyvalues @> ${p}`, filter.keyvalues)
  if (filter.after !== undefined) add((p) => `id ${beyond} ${p}`, filter.after)
  const others = where.join(' AND ')
  const like = (pattern: string) => `$${values.push(pattern)}`
  const has = (part: string) => `name ILIKE ${like(`%${escapeLike(part)}%`)}`
  const list = (condition = '') =>
    read(`SELECT ${FILE_COLUMNS} FROM file WHERE ${others} ${condition} ${page(limit)}`)
  // The planner cannot know whether the page's rows are near the start of the list, or far. So the query follows the
  // list for a while first; OFFSET 0 keeps the limit from influencing the plan for the rest.
  const lookUp = (whole: string, lookedUp = whole) =>
    read(
      `WITH looked AS MATERIALIZED (SELECT * FROM file WHERE ${others} ${page(LOOKED_AT)}),
     near AS (SELECT * FROM looked WHERE ${whole} ${page(limit)}),
     far AS (SELECT * FROM file WHERE ${others} AND ${lookedUp}
       AND id ${beyond} (SELECT id FROM looked ${page(1)} OFFSET ${LOOKED_AT - 1})
       AND (SELECT count(*) FROM looked) = ${LOOKED_AT} AND (SELECT count(*) FROM near) < ${limit} OFFSET 0)
     SELECT ${FILE_COLUMNS} FROM (SELECT * FROM near UNION ALL SELECT * FROM far) found ${page(limit)}`,
    )
  if (name === undefined) return list()
  if (!/[\p{L}\p{N}]{3}/u.test(name)) return lookUp(`lower(name) LIKE lower(${like(`${escapeLike(name)}%`)})`)
  const sample = await nameIndex()
  const whole = has(name)
  if (!sample || isInManyNames(name, sample)) return list(`AND ${whole}`)
  const words = wordsToLookUp(name, sample).map(has)
  // No index covers the expression.
  return lookUp(
    whole,
    words.length > 0 ? `${words.join(' AND ')} AND ${whole.replace('name', "name || ''")}` : whole,
  )
}
