import { once } from 'node:events'
import type { Request, Response } from 'express'
import { z } from 'zod'
import type { Core } from '../core.ts'
import type { Queryable } from '../db/pool.ts'
import { exampleOfShape } from '../http/docs/example.ts'
import { like, timestamp, uuid } from '../http/fields.ts'
import { pageOf, paging, readPage, readPageToken, toPage } from '../http/pages.ts'
import type { Principal } from '../http/principal.ts'
import { type Route, type RouteResponse, routesOf } from '../http/route.ts'
import { text, time } from '../http/shapes.ts'
import { type AuditFilter, eachPage, listAudit, RESULTS } from './audit.ts'

const JSON_LINES = 'application/x-ndjson'
const EXPORT = `With \`Accept: ${JSON_LINES}\`: all matching entries without pages, one JSON object per line.`

const moment = time.transform((value) => new Date(value))

const id = z.uuid('must be a UUID')
const filters = {
  userId: id.optional().describe('Only actions of this user.'),
  keyId: id.optional().describe('Only actions with this API key.'),
  agentId: text(64).optional().describe('Only actions of this agent with its own tokens.'),
  action: text(64)
    .optional()
    .describe(
      'Only this action: the id of a route in this document, `signIn`, or `refusals`: all refusals of a minute that have no entry of their own.',
    ),
  resource: text(255)
    .optional()
    .describe('Only this resource and its parts: `agents/x7f3k2ab` has `agents/x7f3k2ab/secrets/…`.'),
  result: z
    .enum(RESULTS)
    .optional()
    .describe(
      'Only actions that succeeded, only those that were refused or failed, or only those with an unknown outcome.',
    ),
  from: moment.optional().describe('Only entries from this time on.'),
  to: moment.optional().describe('Only entries before this time.'),
  ...paging(100, 1000),
}

const nullable = z.string().nullable()
const entry = z.object({
  id: uuid,
  createdAt: timestamp,
  workspaceId: nullable.describe('Null if the action belongs to no workspace.'),
  via: z
    .enum(['key', 'session', 'gateway', 'platform', 'link', 'nobody', 'terminal'])
    .describe(
      'The credential: an API key, a dashboard session, a token of an agent, a link (signed URL, login link or invitation), none, or `npx berth`.',
    ),
  user: z.object({ id: uuid, name: like('Ada').nullable() }).nullable(),
  keyId: nullable,
  agentId: nullable.describe('The agent that the token belongs to.'),
  action: like('createSecret'),
  method: like('POST').nullable(),
  route: like('/v0/secrets').nullable().describe('The pattern of the path.'),
  resource: like('secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26'),
  status: like(201)
    .nullable()
    .describe('The HTTP status; 499 if the client had disconnected; null for a command.'),
  errorCode: nullable.describe(
    'Null if the action succeeded. `unknown` while a request is in progress, and forever if its process died during the request.',
  ),
  requestId: nullable,
  address: like('203.0.113.20').nullable(),
  userAgent: like('curl/8.5.0').nullable(),
})
const success = {
  description: 'A page of entries, newest first.',
  body: pageOf('entries', entry),
  lines: { mediaType: JSON_LINES, body: like(`${JSON.stringify(exampleOfShape(entry))}\n`) },
}

type Row = Awaited<ReturnType<typeof listAudit>>[number]

const toEntry = ({ userId, userName, ...row }: Row): z.output<typeof entry> => ({
  ...row,
  user: userId === null ? null : { id: userId, name: userName },
})

/** Audit routes: of a workspace for its owners, of the whole instance for its admins. */
export function auditRoutes({ pool, searches, bounds }: Core): Route[] {
  interface Asked {
    req: Request
    res: Response
    principal: Principal
    signal: AbortSignal
  }
  type Query = AuditFilter & { limit: number; pageToken?: string | undefined }
  const answer = async (
    of: string | null,
    { limit, pageToken, ...filter }: Query,
    { req, res, principal, signal }: Asked,
  ): Promise<RouteResponse | undefined> => {
    if (req.accepts(['application/json', JSON_LINES]) === JSON_LINES) {
      const pages = eachPage(pool, of, { ...filter, after: readPageToken(pageToken) })
      await bounds.run('exports', principal, () => sendLines(res, pages, signal))
      return undefined
    }
    const { from, to, ...columns } = filter
    const isSearch = Object.values(columns).some((value) => value !== undefined)
    const page = await readPage({ limit, pageToken }, ({ after, limit }) => {
      const list = (db: Queryable) => listAudit(db, of, { ...filter, after }, limit)
      return isSearch ? searches.run(principal, signal, list) : list(pool)
    })
    return { body: toPage('entries', page, toEntry) }
  }
  return [
    routesOf('Audit')({
      method: 'get',
      path: '/v0/audit',
      id: 'listAudit',
      summary: 'List who did what in the workspace',
      description: `Every request except reads, and every sign-in. ${EXPORT}`,
      scope: 'org:read',
      role: 'owner',
      query: z.object(filters),
      success,
      handle: ({ query, ...asked }) => answer(asked.principal.workspaceId, query, asked),
    }),
    routesOf('Instance')({
      method: 'get',
      path: '/v0/admin/audit',
      id: 'listInstanceAudit',
      summary: 'List who did what in the instance',
      description: `As \`GET /v0/audit\`, for all workspaces, including entries without a workspace: refused sign-ins and commands. ${EXPORT}`,
      scope: 'instance:read',
      query: z.object({ ...filters, workspaceId: id.optional().describe('Only entries of this workspace.') }),
      success,
      handle: ({ query: { workspaceId, ...query }, ...asked }) => answer(workspaceId ?? null, query, asked),
    }),
  ]
}

/** Sends entries as fast as the client reads them, with one or two pages in memory. */
async function sendLines(res: Response, pages: AsyncIterable<Row[]>, signal: AbortSignal): Promise<void> {
  for await (const rows of pages) {
    if (!res.headersSent) res.writeHead(200, { 'content-type': JSON_LINES, 'cache-control': 'no-store' })
    const lines = rows.map((row) => `${JSON.stringify(toEntry(row))}\n`).join('')
    if (!res.write(lines)) await once(res, 'drain', { signal })
    if (signal.aborted) return
  }
  res.end()
}
