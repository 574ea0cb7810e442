import type { IncomingHttpHeaders } from 'node:http'
import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import { like } from '../../http/fields.ts'
import { refuseEncoded } from '../../http/request-headers.ts'
import type { Route } from '../../http/route.ts'
import { parseInput } from '../../http/shapes.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { filePath, folder, folderPath, removed, upload, uploaded, written } from './agent-file-schema.ts'
import { bodyLimit, decodeBase64, UploadMemory, withJsonBody } from './body.ts'
import { absolutePath, listFolder, removeFile, sendFile, storeUpload, writeFile } from './transfer.ts'

const agentRoute = agentRoutesOf('Agent files')
const FILES = '/v0/agents/:agentId/files'
/**
 * How many uploads of the largest size fit in memory at once; one workspace gets half. Uploads of usual size are much
 * smaller.
 */
const LARGEST_AT_A_TIME = 8

/** Files of an agent: everything below its root (contract 4.3). */
export function agentFileRoutes({ agentd, config }: AgentServices): Route[] {
  const maxBytes = config.BERTH_AGENT_LIMITS.fileBytes
  const maxBody = bodyLimit(maxBytes)
  const memory = new UploadMemory(LARGEST_AT_A_TIME * maxBody, (LARGEST_AT_A_TIME / 2) * maxBody)
  return [
    agentRoute({
      method: 'get',
      path: FILES,
      id: 'readAgentFile',
      summary: 'Read a file',
      description:
        'Returns its bytes verbatim, with the type that its name ' +
        'suggests. A browser downloads the file instead of running it. ' +
        '`ETag` contains its version. Use `/files/list` for folders.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      query: filePath,
      success: { description: 'The bytes.', mediaType: '*/*', body: like('# Librarian\n') },
      errors: [413],
      async handle({ agent, query, res, signal }) {
        await sendFile({ agentd, agent, signal }, query.path, maxBytes, res)
        return undefined
      },
    }),
    agentRoute({
      method: 'put',
      path: FILES,
      id: 'writeAgentFile',
      summary: 'Write a file',
      description:
        'The body is the content, at most `fileBytes` of `BERTH_AGENT_LIMITS`. It replaces an existing file ' +
        'completely or not at all, and creates missing folders. With `If-Match: <ETag>`, writes only if ' +
        'that is still the version; with `If-None-Match: *`, only if there is no file; otherwise 412.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      query: filePath,
      stream: { mediaType: 'application/octet-stream', schema: z.file() },
      success: { description: 'The file is written.', body: written },
      errors: [412, 413],
      async handle({ agent, query, req, signal }) {
        refuseEncoded(req)
        const version = seenVersion(req.headers)
        const place = { agentd, agent, signal }
        return { body: await writeFile(place, query.path, req, { maxBytes, version }) }
      },
    }),
    agentRoute({
      method: 'delete',
      path: FILES,
      id: 'deleteAgentFile',
      summary: 'Delete a file or a folder',
      description: 'A folder is deleted with its contents. Existing snapshots keep them.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      query: filePath,
      success: { description: 'The file or folder is deleted.', body: removed },
      async handle({ agent, query, signal }) {
        await removeFile({ agentd, agent, signal }, query.path)
        return { body: { success: true, path: absolutePath(query.path) } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${FILES}/list`,
      id: 'listAgentFiles',
      summary: 'List a folder',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      query: folderPath,
      success: { description: 'Its entries, by name.', body: folder },
      async handle({ agent, query, signal }) {
        const listing = await listFolder({ agentd, agent, signal }, query.path)
        return { body: { path: absolutePath(query.path), ...listing } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${FILES}/upload`,
      id: 'uploadAgentFile',
      summary: 'Upload a file',
      description:
        'Stores it in `uploads` of the workspace, and replaces a file of that name completely or not at all.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      stream: { mediaType: 'application/json', schema: upload },
      success: { description: 'The file’s path.', body: uploaded },
      handle: ({ agent, req, signal }) =>
        withJsonBody(req, { memory, workspaceId: agent.workspaceId }, maxBody, async (body) => {
          const { filename, contentBase64 } = parseInput(upload, body)
          const content = decodeBase64(contentBase64, maxBytes)
          const path = await storeUpload({ agentd, agent, signal }, filename, content)
          return { body: { path, filename, size: content.length } }
        }),
    }),
  ]
}

/** The version that a writer last saw: empty for no file, undefined if the request does not say. */
function seenVersion(headers: IncomingHttpHeaders): string | undefined {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers
  if (noneMatch !== undefined && (noneMatch !== '*' || match !== undefined))
    throw badRequest('If-None-Match: must be *, without If-Match')
  if (match !== undefined && !/^"[^"]{1,100}"$/.test(match))
    throw badRequest('If-Match: must be one strong ETag')
  return noneMatch === undefined ? match : ''
}
