import { z } from 'zod'
import { notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { network, nextPageToken, nothing, pathId, readPageToken } from '../../http/shapes.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import { mergeFilters } from '../keyvalues.ts'
import { type RemovalServices, removal } from '../removal.ts'
import { findUploadedFile } from '../uploads/tus-rows.ts'
import { fileChanges, filePage, fileQuery, fileRecord } from './schema.ts'
import { findFile, listFiles, updateFile } from './service.ts'

const TAG = 'Files'
const PATH = '/v3/files/:network/:id'
const MISSING = 'There is no such file'
const params = z.object({ network, id: pathId })
const one = z.object({ data: fileRecord })

/** Files of both networks (compatibility 1.4). A pin request is none until it is pinned. */
export function fileRoutes(services: RemovalServices): Route[] {
  const { pool } = services
  return [
    route({
      method: 'get',
      path: '/v3/files/:network',
      id: 'listFiles',
      tag: TAG,
      summary: 'List files',
      scope: 'org:files:read',
      params: z.object({ network }),
      query: fileQuery,
      success: { status: 200, description: 'A page of files.', body: filePage },
      async handle({ principal, params, query }) {
        const { limit, cidPending, cid, group, keyvalues, metadata, pageToken, ...filter } = query
        const after = readPageToken(pageToken)
        const canonical = cid === undefined ? undefined : canonicalCid(parseCid(cid))
        const files =
          cidPending === 'true'
            ? []
            : await listFiles(pool, principal.workspaceId, {
                ...filter,
                network: params.network,
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
      path: PATH,
      id: 'getFile',
      tag: TAG,
      summary: 'Get a file',
      scope: 'org:files:read',
      params,
      success: { status: 200, description: 'The file.', body: one },
      errors: [404],
      async handle({ principal, params }) {
        const { workspaceId } = principal
        const file =
          (await findFile(pool, workspaceId, params.network, params.id)) ??
          (await findUploadedFile(pool, workspaceId, params.network, params.id))
        if (!file) throw notFound(MISSING)
        return { body: { data: file } }
      },
    }),
    route({
      method: 'put',
      path: PATH,
      id: 'updateFile',
      tag: TAG,
      summary: "Change a file's name, metadata or end",
      description: 'What is left out stays as it is.',
      scope: 'org:files:write',
      params,
      body: fileChanges,
      success: { status: 200, description: 'The file as it is now.', body: one },
      errors: [404],
      async handle({ principal, params, body }) {
        const file = await updateFile(pool, principal.workspaceId, params.network, params.id, body)
        if (!file) throw notFound(MISSING)
        return { body: { data: file } }
      },
    }),
    route({
      method: 'delete',
      path: PATH,
      id: 'deleteFile',
      tag: TAG,
      summary: 'Delete a file',
      description: 'The file is gone at once; an operation unpins its content unless another file keeps it.',
      scope: 'org:files:write',
      params,
      success: { status: 200, description: 'Deleted.', body: nothing },
      errors: [404],
      operation: true,
      handle: removal(services, 'pinned', MISSING),
    }),
  ]
}
