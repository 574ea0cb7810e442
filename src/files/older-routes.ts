/** Routes of the API before v3, which scripts still use: pinning by hash, listing pins, and unpinning. */

import { z } from 'zod'
import type { Queryable } from '../db/pool.ts'
import { escapeLike, isoTime } from '../db/statements/statement.ts'
import { forbidden, messages, notFound } from '../errors.ts'
import { contentCid, keyvaluePairs, like, timestamp, userId, uuid } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { cid, groupId, limit, network, parseInput, text, time } from '../http/shapes.ts'
import { canonicalCid, parseCid, parseContentCid } from './cid.ts'
import { checkHostNodes, MAX_HOST_NODES } from './host-nodes.ts'
import { removeFile } from './remove.ts'
import type { FileServices } from './services.ts'
import { olderMetadata, parseJson } from './uploads/fields.ts'

const pinRoute = routesOf('Pin by CID')
const fileRoute = routesOf('Files')
const NETWORK = network.default('public').describe('Default: `public`.')
const bytes = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a number of bytes')
  .transform(Number)
  .optional()

const pinByHash = z.object({
  hashToPin: cid.describe('The CID to pin.'),
  pinataMetadata: olderMetadata.nullish(),
  pinataOptions: z
    .strictObject({
      groupId: groupId.nullish(),
      hostNodes: z
        .array(text(1024).meta({ format: 'host-node' }))
        .max(MAX_HOST_NODES)
        .nullish(),
      customPinPolicy: z.unknown().optional().describe('Accepted, without effect: Berth keeps one copy.'),
      pinPolicy: z.unknown().optional().describe('Accepted, without effect.'),
    })
    .nullish(),
})

/** A time in microseconds since 1970. PostgreSQL itself refuses some times of RFC 3339, such as year 0 or `+19:30`. */
const microseconds = time.transform((value) => {
  const fraction = /\.\d{3}(\d{1,3})/.exec(value)?.[1] ?? ''
  return Date.parse(value) * 1000 + Number(fraction.padEnd(3, '0'))
})

const pinListQuery = z.object({
  network: NETWORK,
  hashContains: text(512).optional().describe('Part of the CID.'),
  groupId: groupId.optional().describe('Only files of this group.'),
  pinStart: microseconds.optional().describe('Pinned at this time or later.'),
  pinEnd: microseconds.optional().describe('Pinned at this time or earlier.'),
  pinSizeMin: bytes.describe('Files of at least this many bytes.'),
  pinSizeMax: bytes.describe('Files of at most this many bytes.'),
  status: z.enum(['all', 'pinned', 'unpinned'], 'must be all, pinned or unpinned').default('all'),
  metadata: z
    .object({
      name: text(255).optional(),
      keyvalues: text(16_384).optional().meta({ format: 'json-pairs' }),
    })
    .optional()
    .describe(
      '`metadata[name]`: part of the name. `metadata[keyvalues]`: JSON, `{"<key>": {"value": …, "op": "eq"}}`.',
    ),
  includeCount: z.enum(['true', 'false'], 'must be true or false').default('true').describe('Adds `count`.'),
  pageLimit: limit(10, 1000).describe('The number of files per page.'),
  pageOffset: z
    .string()
    .regex(/^\d{1,6}$/, 'must be a whole number up to 999999')
    .transform(Number)
    .pipe(z.number().max(999_999))
    .default(0)
    .describe('How many files to skip.'),
})

const pinRow = z.object({
  id: uuid,
  ipfs_pin_hash: contentCid,
  size: like(104),
  user_id: userId.nullable(),
  date_pinned: timestamp,
  date_unpinned: z.null(),
  metadata: z.object({ name: z.string().nullable(), keyvalues: keyvaluePairs }),
  regions: z.array(z.object({})).describe('Empty: Berth keeps one copy.'),
  mime_type: like('application/json'),
  number_of_files: like(1),
})

/** Operations on files by their CID, for the older API. */
export function olderRoutes({ config, pool, searches, pins, operations, admitPin }: FileServices): Route[] {
  return [
    pinRoute({
      method: 'post',
      path: '/pinning/pinByHash',
      aliases: ['/v3/pinning/pinByHash'],
      id: 'pinByHash',
      summary: 'Pin a CID to the public network (older API)',
      description:
        'Returns immediately. `GET /v3/files/public/pin_by_cid` lists the request until it is pinned.',
      scope: 'org:files:write',
      body: pinByHash,
      success: {
        description: 'The pin request.',
        body: z.object({
          id: uuid,
          ipfsHash: contentCid,
          status: like('prechecking'),
          name: like('token 1').nullable(),
        }),
      },
      errors: [404, 507],
      entryWithChange: true,
      async handle({ principal, body: { hashToPin, pinataMetadata, pinataOptions }, entry }) {
        if (!principal.plan.pinByCid) throw forbidden(messages.pinByCidPlan, 'plan')
        const canonical = canonicalCid(parseContentCid(hashToPin, 'hashToPin'))
        const hostNodes = pinataOptions?.hostNodes ?? []
        checkHostNodes(hostNodes, 'pinataOptions.hostNodes', config.BERTH_ALLOW_PRIVATE_HOST_NODES)
        await admitPin()
        const asked = {
          cid: hashToPin,
          canonical,
          name: pinataMetadata?.name || null,
          groupId: pinataOptions?.groupId ?? null,
          keyvalues: pinataMetadata?.keyvalues ?? {},
          hostNodes,
        }
        const { record } = await pins.accept(principal, asked, { entry })
        operations.wake()
        return { body: { id: record.id, ipfsHash: record.cid, status: record.status, name: record.name } }
      },
    }),
    fileRoute({
      method: 'get',
      path: '/data/pinList',
      aliases: ['/v3/data/pinList'],
      id: 'pinList',
      summary: 'List files (older API)',
      description: 'Newest first. Berth does not list deleted files: `status=unpinned` finds none.',
      scope: 'org:files:read',
      query: pinListQuery,
      success: {
        description: 'A page of files.',
        body: z.object({
          count: z
            .number()
            .optional()
            .describe('The number of all matches; omitted with `includeCount=false`.'),
          rows: z.array(pinRow),
        }),
      },
      async handle({ principal, query, signal }) {
        const filter = readFilter(principal.workspaceId, query)
        return { body: await searches.run(principal, signal, (db) => listPinned(db, filter, query)) }
      },
    }),
    fileRoute({
      method: 'delete',
      path: '/pinning/unpin/:hash',
      aliases: ['/v3/pinning/unpin/:hash'],
      id: 'unpin',
      summary: 'Delete all files and pin requests of a CID (older API)',
      scope: 'org:files:write',
      params: z.object({ hash: cid.describe('The CID.') }),
      query: z.object({ network: NETWORK }),
      success: { description: '`OK`', mediaType: 'text/plain', body: z.literal('OK') },
      errors: [404],
      async handle({ principal: { workspaceId }, params, query, res }) {
        const canonical = canonicalCid(parseCid(params.hash, 'hash'))
        const { rows } = await pool.query<{ id: string }>(
          `SELECT id FROM file WHERE workspace_id = $1 AND network = $2 AND cid_v1 = $3 AND removed_at IS NULL
           ORDER BY id`,
          [workspaceId, query.network, canonical],
        )
        // Each is removed separately, because one transaction would hold all of the locks; a repeated request removes
        // the rest.
        let removed = 0
        for (const { id } of rows)
          if (await removeFile(pool, { workspaceId, ...query, id, only: 'any' })) removed++
        if (removed === 0) throw notFound('hash: the workspace has no file with this CID')
        operations.wake()
        res.status(200).type('text/plain').send('OK')
        return undefined
      },
    }),
  ]
}

type PinListQuery = z.output<typeof pinListQuery>

/** Conditions on files, and the values of their placeholders. */
interface Filter {
  where: string
  values: unknown[]
}

function readFilter(workspaceId: string, query: PinListQuery): Filter {
  const values: unknown[] = [workspaceId, query.network]
  const where = ['workspace_id = $1', 'network = $2', `status = 'pinned'`, 'removed_at IS NULL']
  const add = (value: unknown, condition: (placeholder: string) => string) => {
    if (value !== undefined) where.push(condition(`$${values.push(value)}`))
  }
  const moment = (p: string) => `timestamptz 'epoch' + ${p} * interval '1 microsecond'`
  const part = (value: string | undefined) => (value === undefined ? undefined : `%${escapeLike(value)}%`)
  if (query.status === 'unpinned') where.push('false')
  add(part(query.hashContains), (p) => `(cid LIKE ${p} OR cid_v1 LIKE ${p})`)
  add(query.groupId, (p) => `group_id = ${p}`)
  add(query.pinStart, (p) => `pinned_at >= ${moment(p)}`)
  add(query.pinEnd, (p) => `pinned_at <= ${moment(p)}`)
  add(query.pinSizeMin, (p) => `size >= ${p}`)
  add(query.pinSizeMax, (p) => `size <= ${p}`)
  add(part(query.metadata?.name), (p) => `name ILIKE ${p}`)
  add(readPairs(query.metadata?.keyvalues), (p) => `keyvalues @> ${p}`)
  return { where: where.join(' AND '), values }
}

const pairs = z.record(
  z.string(),
  z.object({
    value: z.union([z.string(), z.number().transform(String)]),
    op: z.literal('eq', 'must be eq: Berth has no other comparison'),
  }),
)

/** Parses the pairs of `metadata[keyvalues]`, all of which a file must have; returns JSON. @throws ApiError 400 */
function readPairs(json: string | undefined): string | undefined {
  if (json === undefined) return undefined
  const field = 'metadata.keyvalues'
  const data = parseInput(pairs, parseJson(field, json), field)
  return JSON.stringify(Object.fromEntries(Object.entries(data).map(([key, { value }]) => [key, value])))
}

async function listPinned(db: Queryable, { where, values }: Filter, query: PinListQuery) {
  const { rows } = await db.query(
    `SELECT id, cid AS ipfs_pin_hash, size::float8 AS size, user_id, ${isoTime('pinned_at')} AS date_pinned,
       NULL AS date_unpinned, jsonb_build_object('name', name, 'keyvalues', keyvalues) AS metadata,
       '[]'::jsonb AS regions, mime_type, number_of_files
     FROM file WHERE ${where} ORDER BY removed_at DESC, id DESC LIMIT ${query.pageLimit} OFFSET ${query.pageOffset}`,
    values,
  )
  if (query.includeCount === 'false') return { rows }
  const counted = await db.query<{ count: number }>(
    `SELECT count(*)::float8 AS count FROM file WHERE ${where}`,
    values,
  )
  return { count: counted.rows[0]?.count ?? 0, rows }
}
