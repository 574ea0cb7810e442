import { z } from 'zod'
import { notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { nextPageToken, nothing, pathId, readPageToken } from '../../http/shapes.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import { mergeFilters } from '../keyvalues.ts'
import { type RemovalServices, removal } from '../removal.ts'
import { filePage, fileQuery, fileRecord } from './schema.ts'
import { findFile, listFiles } from './service.ts'

const TAG = 'Files'
const NETWORK = 'public'

export function fileRoutes(services: RemovalServices): Route[] {
  const { pool } = services
  return [
    route({
      method: 'get',
      path: '/v3/files/public',
      id: 'listFiles',
      tag: TAG,
      summary: 'List pinned files',
      scope: 'org:files:read',
      query: fileQuery,
      success: { status: 200, description: 'A page of files.', body: filePage },
      async handle({ principal, query }) {
        const { limit, cidPending, cid, group, keyvalues, metadata, pageToken, ...filter } = query
        const after = readPageToken(pageToken)
        const canonical = cid === undefined ? undefined : canonicalCid(parseCid(cid))
        const files =
          cidPending === 'true'
            ? []
            : await listFiles(pool, principal.workspaceId, {
                ...filter,
                network: NETWORK,
                group: group === 'null' ? null : group,
                canonical,
                keyvalues: mergeFilters(keyvalues, metadata),
                after,
                limit: limit + 1,
              })
        return {
          body: { data: { files: files.slice(0, limit), next_page_token: nextPageToken(files, limit) } },
        }
      },
    }),
    route({
      method: 'get',
      path: '/v3/files/public/:id',
      id: 'getFile',
      tag: TAG,
      summary: 'Get a pinned file',
      scope: 'org:files:read',
      params: z.object({ id: pathId }),
      success: { status: 200, description: 'The file.', body: z.object({ data: fileRecord }) },
      errors: [404],
      async handle({ principal, params }) {
        const file = await findFile(pool, principal.workspaceId, NETWORK, params.id)
        if (!file) throw notFound('There is no such file')
        return { body: { data: file } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/files/public/:id',
      id: 'deleteFile',
      tag: TAG,
      summary: 'Delete a file',
      description: 'The file is gone at once; an operation unpins its content unless another file keeps it.',
      scope: 'org:files:write',
      params: z.object({ id: pathId }),
      success: { status: 200, description: 'Deleted.', body: nothing },
      errors: [404],
      operation: true,
      handle: removal(services, 'pinned', 'There is no such file'),
    }),
  ]
}
