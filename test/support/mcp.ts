/** The official client of the Model Context Protocol, connected to a Berth. */
import { after } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

/** The stateless revision, and the newest one that most clients speak. */
export const REVISIONS = ['2026-07-28', '2025-11-25'] as const

/** A client with a key, which closes after the tests of the file. */
export async function connectMcp(
  url: string,
  key: string | undefined,
  revision: (typeof REVISIONS)[number] = REVISIONS[0],
): Promise<Client> {
  const mode = revision === REVISIONS[0] ? { pin: revision } : 'legacy'
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const headers = { ...(key && { authorization: `Bearer ${key}` }) }
  await client.connect(new StreamableHTTPClientTransport(at(url), { requestInit: { headers } }))
  after(() => client.close())
  return client
}

type Called = Awaited<ReturnType<Client['callTool']>>

/** The text of a result, which for an error is its message. */
export const textOf = ({ content }: Called): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** The API's server, unless the URL names another one. */
const at = (url: string) => (url.endsWith('/mcp') ? new URL(url) : new URL('/mcp', url))
