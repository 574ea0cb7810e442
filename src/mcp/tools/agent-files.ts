/** Tools that read and write files in the sandbox of an agent. */
import { z } from 'zod'
import { readWithin, ToolError, type Values } from '../api.ts'
import { inputOf, outputOf } from '../schema.ts'
import type { Call, Tool } from '../tool.ts'
import { bytesOf, CONTENT, isText } from './content.ts'

/** A longer file does not fit into what a model reads. */
const MAX_READ = 524_288

export const agentFileTools: Tool[] = [
  {
    name: 'agents_read_file',
    title: 'Read a file of an agent',
    description:
      'Returns a file of the sandbox of an agent: as text, or in base64 if it is not UTF-8. For a file of more than ' +
      `${MAX_READ / 1024} KiB, run a command that prints a part of it.`,
    routes: ['readAgentFile'],
    hints: { readOnly: true },
    input: (api) => inputOf(api.route('readAgentFile'), ['agentId', 'path']),
    output: () => ({
      type: 'object',
      properties: {
        text: { type: 'string' },
        base64: { type: 'string' },
        size: { type: 'integer' },
        version: { type: 'string', description: 'For `ifVersion` of agents_write_file.' },
      },
      required: ['size', 'version'],
    }),
    run: readFile,
  },
  {
    name: 'agents_write_file',
    title: 'Write a file of an agent',
    description:
      'Writes a file in the sandbox of an agent, with its folders. It replaces a file of that name completely; with ' +
      '`ifVersion` only if that is still its version.',
    routes: ['writeAgentFile'],
    hints: { destructive: true, idempotent: true },
    input: (api) => inputOf(api.route('writeAgentFile'), ['agentId', 'path'], { ...CONTENT, ...VERSION }),
    output: (api) => outputOf(api.route('writeAgentFile')),
    run: writeFile,
  },
]

const VERSION = {
  ifVersion: {
    type: 'string',
    description: 'The `version` that you read; empty for a file that must not exist yet.',
  },
}

/** Reads a file of an agent. @throws ToolError */
export async function fileOf({ api, args }: Pick<Call, 'api' | 'args'>) {
  const { agentId, path } = args
  const message = await api.open('readAgentFile', { path: { agentId }, query: { path } })
  const content = await readWithin(message, MAX_READ)
  const type = String(message.headers['content-type'] ?? '')
  return { content, type, version: String(message.headers.etag ?? '') }
}

async function readFile(call: Call): Promise<Values> {
  const { content, version } = await fileOf(call)
  const shown = isText(content) ? { text: content.toString() } : { base64: content.toString('base64') }
  return { ...shown, size: content.length, version }
}

const version = z.string('must be text').optional()

async function writeFile({ api, args }: Call): Promise<Values> {
  const { agentId, path, ifVersion } = args
  const seen = version.safeParse(ifVersion)
  if (!seen.success) throw new ToolError('ifVersion: must be text')
  const headers = {
    'content-type': 'application/octet-stream',
    ...(seen.data && { 'if-match': seen.data }),
    ...(seen.data === '' && { 'if-none-match': '*' }),
  }
  const reply = await api.call('writeAgentFile', {
    path: { agentId },
    query: { path },
    body: bytesOf(args),
    headers,
  })
  return reply.body
}
