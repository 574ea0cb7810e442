/**
 * Clients of OAuth, by their metadata documents: a client's id is the https URL of a JSON document about it
 * (draft-ietf-oauth-client-id-metadata-document). The URL is a stranger's: the address that is connected to is the one
 * that was checked, redirects are not followed, and time and bytes are bounded.
 */
import http from 'node:http'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as openTls } from 'node:tls'
import { z } from 'zod'
import { type Destination, hasDestination, parseDestination } from '../../agent-proxy/destination.ts'
import { dial, ProxyError, resolveByDns, resolveBySystem } from '../../agent-proxy/dial.ts'
import { ApiError, badRequest } from '../../errors.ts'
import { text } from '../../http/shapes.ts'
import { withDeadline } from '../../lib/signals.ts'

const FETCH_MS = 10_000
const MAX_BYTES = 65_536
const MAX_URL = 2048

const document = z.looseObject({
  client_id: text(MAX_URL),
  client_name: text(200).optional().catch(undefined),
  redirect_uris: z.array(text(MAX_URL)).min(1).max(100),
  token_endpoint_auth_method: z.string().optional(),
})

export interface Client {
  /** The URL of its document, exactly as the client gave it. */
  id: string
  /** The host that vouches for it. */
  host: string
  /** As the document names it: anyone can claim any name. */
  name: string | undefined
  redirectUris: string[]
}

/**
 * Reads the document of a client.
 * @param allowed `BERTH_MCP_CLIENT_ALLOW`: these may have private addresses, and use http.
 * @throws ApiError 400 if it is not a client's.
 */
export async function findClient(id: string, allowed: readonly Destination[]): Promise<Client> {
  const url = id.length <= MAX_URL && URL.canParse(id) ? new URL(id) : undefined
  const isHttps = url?.protocol === 'https:'
  const destination = url && parseDestination(url.host, isHttps ? 443 : 80)
  if (!url || !destination) throw badRequest('client_id: must be the https URL of a client’s document')
  const isAllowed = hasDestination(allowed, destination)
  if (!isHttps && !(isAllowed && url.protocol === 'http:'))
    throw badRequest('client_id: must be the https URL of a client’s document')
  if (url.username || url.password || url.hash || url.pathname === '/')
    throw badRequest('client_id: must have a path, and neither a user nor a fragment')
  const late = () => new ProxyError(504, `${url.host} did not answer in time`)
  const read = await withDeadline({ ms: FETCH_MS, late }, (signal) =>
    fetchJson(url, { destination, isAllowed, signal }),
  ).catch((error) => {
    if (error instanceof ApiError) throw error
    throw new ApiError(400, 'bad_client', `client_id: ${error.message}`.slice(0, 300), { cause: error })
  })
  const parsed = document.safeParse(read)
  if (!parsed.success || parsed.data.client_id !== id)
    throw badRequest('client_id: the document at this URL is not about this client')
  const { client_name: name, redirect_uris: redirectUris, token_endpoint_auth_method: method } = parsed.data
  if (method !== undefined && method !== 'none')
    throw badRequest('client_id: clients with a secret or a key of their own are not supported')
  return { id, host: url.host, name, redirectUris }
}

async function fetchJson(
  url: URL,
  { destination, isAllowed, signal }: { destination: Destination; isAllowed: boolean; signal: AbortSignal },
): Promise<unknown> {
  const resolve = isAllowed ? resolveBySystem : resolveByDns
  const socket = await dial(destination, { isAllowed, connectMs: FETCH_MS, resolve })
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
  try {
    const connection = url.protocol === 'https:' ? await secure(socket, destination.host) : socket
    const answer = await get(url, connection, signal)
    if (answer.statusCode !== 200) throw new Error(`${url.host} answered ${answer.statusCode}`)
    const parts: Buffer[] = []
    let size = 0
    for await (const part of answer) {
      size += part.length
      if (size > MAX_BYTES) throw new Error(`the document has more than ${MAX_BYTES} bytes`)
      parts.push(part)
    }
    return JSON.parse(Buffer.concat(parts).toString())
  } finally {
    socket.destroy()
  }
}

function secure(socket: Duplex, host: string): Promise<Duplex> {
  const tls = openTls({ socket, host, servername: isIP(host) ? '' : host, ALPNProtocols: ['http/1.1'] })
  return new Promise((done, fail) => {
    tls.once('secureConnect', () => done(tls))
    tls.once('error', fail)
    socket.once('close', () => fail(new Error('the connection was closed')))
  })
}

const get = (url: URL, connection: Duplex, signal: AbortSignal): Promise<http.IncomingMessage> =>
  new Promise((resolve, reject) => {
    const headers = { host: url.host, accept: 'application/json', connection: 'close' }
    const path = `${url.pathname}${url.search}`
    const request = http.request({ createConnection: () => connection, path, headers, signal })
    request.once('response', resolve).once('error', reject).end()
  })
