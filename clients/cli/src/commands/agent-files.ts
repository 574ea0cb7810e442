/** The files of an agent. */
import { createWriteStream, openAsBlob } from 'node:fs'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { unwrap } from '../../../typescript/src/index.ts'
import { command } from '../command.ts'
import { agentIdOf } from '../find.ts'
import { ago, bytes, table } from '../format.ts'
import { stdinAsBlob } from '../local-files.ts'
import { streamOf } from '../stream.ts'

export const agentFileCommands = [
  command({
    name: 'agents files ls',
    summary: 'list a folder of an agent',
    usage: '<agent> [path]',
    async run({ berth, args: [named, path] }) {
      const agentId = await agentIdOf(berth, named)
      const data = await unwrap(
        berth.GET('/v0/agents/{agentId}/files/list', {
          params: { path: { agentId }, query: { ...(path !== undefined && { path }) } },
        }),
      )
      const rows = data.entries.map(({ name, type, size, modifiedAt }) => ({
        name: type === 'directory' ? `${name}/` : name,
        size: type === 'directory' ? null : bytes(size),
        modified: ago(modifiedAt),
      }))
      return { data, text: table(rows, 'the folder is empty') }
    },
  }),
  command({
    name: 'agents files get',
    summary: 'download a file of an agent, or print it with `-`',
    usage: '<agent> <path> [to]',
    async run({ berth, args: [named, path = '', to = basename(path)], json, signal }) {
      const agentId = await agentIdOf(berth, named)
      const body = await unwrap(
        berth.GET('/v0/agents/{agentId}/files', {
          params: { path: { agentId }, query: { path } },
          parseAs: 'stream',
          signal,
        }),
      )
      const stream = Readable.fromWeb(streamOf(body) as never)
      if (to === '-') {
        await pipeline(stream, process.stdout, { end: false })
        return
      }
      await pipeline(stream, createWriteStream(to))
      return { data: { path, to }, text: json ? '' : `${path} → ${to}` }
    },
  }),
  command({
    name: 'agents files put',
    summary: 'write a file of an agent; `-` reads stdin',
    usage: '<agent> <file> <path>',
    async run({ berth, args: [named, file = '', path = ''], signal }) {
      const agentId = await agentIdOf(berth, named)
      const content = file === '-' ? await stdinAsBlob() : await openAsBlob(file)
      const data = await unwrap(
        berth.PUT('/v0/agents/{agentId}/files', {
          params: { path: { agentId }, query: { path } },
          body: '',
          bodySerializer: () => content,
          headers: { 'content-type': 'application/octet-stream' },
          signal,
        }),
      )
      return { data, text: `${data.path}  ${bytes(data.size)}` }
    },
  }),
  command({
    name: 'agents files rm',
    summary: 'delete a file or a folder of an agent',
    usage: '<agent> <path>',
    async run({ berth, args: [named, path = ''] }) {
      const agentId = await agentIdOf(berth, named)
      const params = { path: { agentId }, query: { path } }
      const data = await unwrap(berth.DELETE('/v0/agents/{agentId}/files', { params }))
      return { data, text: `deleted ${data.path}` }
    },
  }),
]
