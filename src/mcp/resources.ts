/** Resources, which clients attach to conversations: logs and files of agents, and records of files. */
import { type Api, ToolError, type Values } from './api.ts'
import { withoutSecrets } from './schema.ts'
import { fileOf } from './tools/agent-files.ts'
import { isText } from './tools/content.ts'

const PAGE = 100

type Contents = { uri: string; mimeType: string } & ({ text: string } | { blob: string })

export const RESOURCE_TEMPLATES = [
  {
    uriTemplate: 'berth://agents/{agentId}/log',
    name: 'agent-log',
    title: 'Log of an agent',
    mimeType: 'text/plain',
  },
  {
    uriTemplate: 'berth://agents/{agentId}/files/{+path}',
    name: 'agent-file',
    title: 'File of an agent',
    description: 'The path is below /home/node/clawd, as in workspace/NOTES.md.',
  },
  {
    uriTemplate: 'berth://files/{network}/{id}',
    name: 'file',
    title: 'Record of a file on IPFS',
    mimeType: 'application/json',
  },
]

/** The logs of the workspace's agents. Files are found with tools, and read by their URIs. */
export async function listResources(api: Api, cursor: string | undefined) {
  if (!api.allows('listAgents')) return { resources: [] }
  const { body, headers } = await api.call('listAgents', { query: { limit: PAGE, pageToken: cursor } })
  const resources = (body.agents as { agentId: string; name: string }[]).map(({ agentId, name }) => ({
    uri: `berth://agents/${agentId}/log`,
    name: `${agentId}-log`,
    title: `Log of ${name}`,
    mimeType: 'text/plain',
  }))
  const next = headers['next-page-token']
  return { resources, ...(typeof next === 'string' && { nextCursor: next }) }
}

const KINDS: [RegExp, (api: Api, uri: string, ...parts: string[]) => Promise<Contents>][] = [
  [
    /^berth:\/\/agents\/([^/]+)\/log$/,
    async (api, uri, agentId) => {
      const { body } = await api.call('readAgentLogs', { path: { agentId } })
      return { uri, mimeType: 'text/plain', text: String(body.logs) }
    },
  ],
  [
    /^berth:\/\/agents\/([^/]+)\/files\/(.+)$/s,
    async (api, uri, agentId, path) => {
      const args: Values = { agentId, path }
      const { content, type } = await fileOf({ api, args })
      const mimeType = type.replace(/;.*/s, '') || 'application/octet-stream'
      if (isText(content)) return { uri, mimeType, text: content.toString() }
      return { uri, mimeType, blob: content.toString('base64') }
    },
  ],
  [
    /^berth:\/\/files\/([^/]+)\/([^/]+)$/,
    async (api, uri, network, id) => {
      const { body } = await api.call('getFile', { path: { network, id } })
      return { uri, mimeType: 'application/json', text: JSON.stringify(withoutSecrets(body.data)) }
    },
  ],
]

/** Reads a resource. @throws ToolError, 404 if there is none. */
export async function readResource(api: Api, uri: string): Promise<Contents> {
  for (const [pattern, read] of KINDS) {
    const [whole, ...parts] = pattern.exec(uri) ?? []
    if (whole !== undefined) return read(api, uri, ...parts.map(decoded))
  }
  throw new ToolError('There is no such resource', 404)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new ToolError('There is no such resource', 404)
  }
}
