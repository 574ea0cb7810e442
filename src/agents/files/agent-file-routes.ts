import { badRequest } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { describeIssue } from '../../http/shapes.ts'
import { type AgentServices, agentRoute } from '../agent-route.ts'
import { filePath, folder, folderPath, upload, uploaded } from './agent-file-schema.ts'
import { bodyLimit, decodeBase64, UploadMemory, withJsonBody } from './body.ts'
import { absolutePath, listFolder, sendFile, storeUpload } from './transfer.ts'

const TAG = 'Agent files'
const FILES = '/v0/agents/:agentId/files'
/** Uploads of the largest size that are held in memory at a time, of a workspace half; of a usual size many more. */
const LARGEST_AT_A_TIME = 8

/** Files of an agent: everything below its root (contract 4.3). */
export function agentFileRoutes({ agentd, config }: AgentServices): Route[] {
  const maxBytes = config.BERTH_AGENT_UPLOAD_BYTES
  const maxBody = bodyLimit(maxBytes)
  const memory = new UploadMemory(LARGEST_AT_A_TIME * maxBody, (LARGEST_AT_A_TIME / 2) * maxBody)
  return [
    agentRoute({
      method: 'get',
      path: FILES,
      id: 'readAgentFile',
      tag: TAG,
      summary: 'Read a file',
      description:
        'Its bytes as they are. The type is that of its name; a browser stores it, and would run nothing of it. ' +
        'A folder is listed at `/files/list`.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      query: filePath,
      success: { status: 200, description: 'The bytes.', mediaType: '*/*' },
      errors: [413],
      async handle({ agent, query, res, signal }) {
        await sendFile({ agentd, agent, signal }, query.path, maxBytes, res)
        return undefined
      },
    }),
    agentRoute({
      method: 'get',
      path: `${FILES}/list`,
      id: 'listAgentFiles',
      tag: TAG,
      summary: 'List a folder',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      query: folderPath,
      success: { status: 200, description: 'Its entries, by name.', body: folder },
      async handle({ agent, query, signal }) {
        const listing = await listFolder({ agentd, agent, signal }, query.path)
        return { body: { path: absolutePath(query.path), ...listing } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${FILES}/upload`,
      id: 'uploadAgentFile',
      tag: TAG,
      summary: 'Upload a file',
      description:
        'It goes into `uploads` of the workspace, in place of one of the same name, whole or not at all.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'agentFiles',
      stream: { mediaType: 'application/json', schema: upload },
      success: { status: 200, description: 'Where it is.', body: uploaded },
      handle: ({ agent, req, signal }) =>
        withJsonBody(req, { memory, workspaceId: agent.workspaceId }, maxBody, async (body) => {
          const parsed = upload.safeParse(body)
          if (!parsed.success) throw badRequest(describeIssue(parsed.error))
          const { filename, contentBase64 } = parsed.data
          const content = decodeBase64(contentBase64, maxBytes)
          const path = await storeUpload({ agentd, agent, signal }, filename, content)
          return { body: { path, filename, size: content.length } }
        }),
    }),
  ]
}
