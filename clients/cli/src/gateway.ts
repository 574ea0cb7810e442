/** Content of files, which gateways serve. */
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Berth, RequestError, unwrap } from '../../typescript/src/index.ts'
import { AdvisedError } from './errors.ts'
import type { Network } from './find.ts'

/** The root of the workspace's first gateway. It has the scheme and port of the API. */
async function gatewayOf(berth: Berth, api: string): Promise<string> {
  const { data } = await unwrap(berth.GET('/v3/gateways'))
  const [gateway] = data.rows
  if (!gateway)
    throw new AdvisedError('the workspace has no gateway', 'create one in the dashboard, under Files')
  const { protocol, port } = new URL(api)
  return `${protocol}//${gateway.host}${port && `:${port}`}`
}

const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/')

interface Shared {
  id: string
  cid: string
  network: Network
}

/**
 * A URL that shows a file to anyone.
 * @param options.seconds how long the link to a private file works: 15 minutes unless given, which needs a key that may
 *   write. @param options.path within a folder.
 */
export async function linkTo(
  berth: Berth,
  api: string,
  { id, cid, network }: Shared,
  { path = '', seconds }: { path?: string; seconds?: number | undefined } = {},
): Promise<string> {
  if (network === 'private' && !path && seconds === undefined)
    return (await unwrap(berth.GET('/v0/files/private/{id}/link', { params: { path: { id } } }))).data
  const folder = network === 'public' ? 'ipfs' : 'files'
  const url = `${await gatewayOf(berth, api)}/${folder}/${cid}${path && `/${encodePath(path)}`}`
  if (network === 'public') return url
  const body = { url, method: 'GET' as const, expires: seconds ?? 900, date: Math.floor(Date.now() / 1000) }
  return (await unwrap(berth.POST('/v3/files/private/download_link', { body }))).data
}

/**
 * Opens a URL of a gateway. Node does not resolve names below localhost, which every browser does.
 * @throws RequestError
 */
export async function open(url: string, signal: AbortSignal): Promise<IncomingMessage> {
  // Loaded only here: they would take half of the time that the other commands need to start.
  const [{ request }, { lookup }] = await Promise.all([
    url.startsWith('https:') ? import('node:https') : import('node:http'),
    import('node:dns'),
  ])
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const find: typeof lookup = ((name: string, options: object, done: never) =>
      lookup(name.endsWith('.localhost') ? 'localhost' : name, options, done)) as never
    request(url, { signal, lookup: find }, resolve)
      .on('error', (error) => reject(new TypeError('fetch failed', { cause: error })))
      .end()
  })
  const { statusCode = 0, headers } = response
  if (statusCode === 200) return response
  const said = await text(response)
  const message = readMessage(said) ?? `${statusCode}`
  const code = headers['error-code']
  throw new RequestError(
    statusCode,
    message,
    new Headers(typeof code === 'string' ? { 'error-code': code } : {}),
  )
}

function readMessage(body: string): string | undefined {
  try {
    return JSON.parse(body).error
  } catch {
    return undefined
  }
}
