/** Tools for files on IPFS. */
import { z } from 'zod'
import { optionalName } from '../../http/shapes.ts'
import { ToolError, type Values } from '../api.ts'
import { inputOf, outputOf } from '../schema.ts'
import { type Call, routeTool, type Tool } from '../tool.ts'
import { bytesOf, CONTENT } from './content.ts'

export const fileTools: Tool[] = [
  routeTool({
    name: 'files_search',
    title: 'Search files',
    description:
      'Lists files on a network, newest first, by part of the name, group, media type, CID or metadata. Returns their ' +
      'ids and CIDs.',
    route: 'listFiles',
    args: ['network', 'name', 'group', 'mimeType', 'cid', 'keyvalues', 'order', 'limit', 'pageToken'],
    hints: { readOnly: true },
  }),
  {
    name: 'files_upload',
    title: 'Upload a file',
    description:
      'Stores a file of up to about 700 KB, and returns its CID. On the public network anyone can read it; the private ' +
      'one is the default. Upload larger files with the command line or the API.',
    routes: ['uploadFile'],
    hints: {},
    input: (api) => ({
      ...inputOf(api.route('uploadFile'), [], { ...UPLOAD, ...CONTENT }),
      required: ['name'],
    }),
    output: (api) => outputOf(api.route('uploadFile')),
    run: upload,
  },
  routeTool({
    name: 'files_pin',
    title: 'Pin a CID',
    description:
      'Fetches content that others have on IPFS by its CID and keeps it, as a public file. It can take long: ' +
      'files_list_pins shows what is pending or has failed.',
    route: 'pinByCid',
    args: ['cid', 'name', 'group_id', 'keyvalues', 'host_nodes'],
    hints: { idempotent: true },
  }),
  routeTool({
    name: 'files_list_pins',
    title: 'List pending pins',
    description: 'Lists CIDs that are still being fetched, or could not be. Pinned ones are in files_search.',
    route: 'listPinByCid',
    args: ['status', 'cid', 'order', 'limit', 'pageToken'],
    hints: { readOnly: true },
  }),
  {
    name: 'files_link',
    title: 'Get a link to a file',
    description:
      'Returns a URL at which a file can be opened. Anyone with the link to a private file can read it until it ' +
      'expires, 15 minutes later by default; a longer time needs a key that may change files.',
    routes: ['getFile', 'listGateways'],
    hints: { readOnly: true },
    input: (api) =>
      inputOf(api.route('getFile'), ['network', 'id'], {
        expiresSeconds: { type: 'integer', minimum: 1, description: 'Only for private files.' },
      }),
    output: () => ({ type: 'object', properties: { url: { type: 'string' } }, required: ['url'] }),
    run: link,
  },
  routeTool({
    name: 'files_delete',
    title: 'Delete a file',
    description: 'Deletes a file. Its content is unpinned unless another file has it.',
    route: 'deleteFile',
    args: ['network', 'id'],
    hints: { destructive: true, idempotent: true },
  }),
]

const UPLOAD = {
  name: { type: 'string', description: 'The name of the file, such as notes.md.', maxLength: 255 },
  network: { type: 'string', enum: ['public', 'private'], description: 'Default: private.' },
  group_id: { type: 'string', format: 'uuid', description: 'The group to place the file in.' },
  keyvalues: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Metadata: at most ten pairs.',
  },
}
const fields = z.object({
  name: optionalName(255).min(1),
  network: z.string().optional(),
  group_id: z.string().optional(),
  keyvalues: z.record(z.string(), z.string()).optional(),
})

async function upload({ api, args }: Call): Promise<Values> {
  const read = fields.safeParse(args)
  if (!read.success) {
    const [issue] = read.error.issues
    throw new ToolError(`${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { name, keyvalues, ...rest } = read.data
  const form = new FormData()
  const given = { ...rest, name, ...(keyvalues && { keyvalues: JSON.stringify(keyvalues) }) }
  for (const [field, value] of Object.entries(given)) if (value !== undefined) form.set(field, value)
  form.set('file', new Blob([bytesOf(args) as Uint8Array<ArrayBuffer>]), name.replace(/[/\\]/g, '_'))
  const encoded = new Response(form)
  const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
  return (await api.call('uploadFile', { body: new Uint8Array(await encoded.arrayBuffer()), headers })).body
}

async function link({ api, args }: Call): Promise<Values> {
  const { network, id, expiresSeconds } = args
  const path = { network, id }
  const { cid } = (await api.call('getFile', { path })).body.data as { cid: string }
  if (network === 'private' && expiresSeconds === undefined)
    return { url: (await api.call('linkToFile', { path: { id } })).body.data }
  const { rows } = (await api.call('listGateways')).body.data as { rows: { host: string }[] }
  if (!rows[0])
    throw new ToolError('The workspace has no gateway: create one in the dashboard, under Files', 404)
  const { protocol, host } = api.req
  const port = /:\d+$/.exec(host ?? '')?.[0] ?? ''
  const url = `${protocol}://${rows[0].host}${port}/${network === 'public' ? 'ipfs' : 'files'}/${cid}`
  if (network === 'public') return { url }
  const body = { url, method: 'GET', expires: expiresSeconds }
  return { url: (await api.call('signDownload', { body })).body.data }
}
