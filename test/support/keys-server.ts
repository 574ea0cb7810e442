/** An HTTPS API that takes keys, as brokered secrets travel to it: it records and repeats all that it gets. */
import { generateKeyPairSync } from 'node:crypto'
import { type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { makeCertificate } from '../../src/agent-proxy/tls/certificate.ts'

const DAY_MS = 86_400_000

export interface KeysRequest {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

export interface KeysServer {
  /** URL of the Berth whose `/mcp` it offers. */
  berth: string | undefined
  readonly port: number
  /** The certificate of its authority, in PEM. */
  readonly ca: string
  /** Requests so far, oldest first. */
  readonly requests: readonly KeysRequest[]
  stop(): Promise<void>
}

/**
 * Starts it for `host`. `/echo` returns the request's headers in headers and body, `/token` the key as OAuth servers
 * do, `/redirect?to=` a redirect. `/repository.git` is a repository of git that takes the key as a password.
 * @param options.key the key that it takes, in any place.
 * @param options.git URL of a git server with the repository.
 */
export async function startKeysServer(options: {
  host: string
  key: string
  address?: string
  port?: number
  git?: string
}): Promise<KeysServer> {
  const { host, key, address = '127.0.0.1', port = 0, git } = options
  const requests: KeysRequest[] = []
  const { ca, cert, privateKey } = certificates(host)
  const server = createServer({ key: privateKey, cert }, async (req, res) => {
    const { method = '', url = '/', headers } = req
    if (git && url.startsWith('/repository.git')) {
      requests.push({ method, url, headers, body: '' })
      const [, password] = decode(headers.authorization).split(':')
      if (password !== key) return void res.writeHead(401, { 'www-authenticate': 'Basic realm=git' }).end()
      return forward(req, res, git)
    }
    if (own.berth && url === '/mcp') return forward(req, res, own.berth)
    const body = await text(req).catch(() => '')
    requests.push({ method, url, headers, body })
    answer(new URL(url, `https://${host}`), { headers, key }, res)
  })
  server.on('tlsClientError', () => {})
  await listen(server, address, port)
  const own: KeysServer = {
    berth: undefined,
    port: (server.address() as AddressInfo).port,
    ca,
    requests,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return own
}

function forward(req: IncomingMessage, res: ServerResponse, base: string): void {
  const { method, url = '/', headers } = req
  const target = new URL(url, base)
  const inner = request(target, { method, headers: { ...headers, host: target.host } }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(res)
  })
  inner.on('error', () => res.destroy())
  req.pipe(inner)
}

function answer(
  { pathname, searchParams }: URL,
  { headers, key }: { headers: IncomingHttpHeaders; key: string },
  res: ServerResponse,
): void {
  const knows = JSON.stringify(headers).includes(key)
  const isIn =
    knows || decode(headers.authorization).includes(key) || [...searchParams.values()].includes(key)
  const json = (body: object) => res.setHeader('content-type', 'application/json').end(JSON.stringify(body))
  if (pathname === '/redirect')
    return void res.writeHead(302, { location: searchParams.get('to') ?? '/' }).end()
  if (pathname === '/token')
    return void json({ access_token: key, encoded: encodeURIComponent(key), base64: btoa(`x:${key}`) })
  if (pathname === '/echo') {
    res.setHeader('x-echo', headers.authorization ?? '')
    return void json({ welcome: isIn, headers })
  }
  json({ welcome: isIn })
}

/** Decodes the credentials in `Authorization`. */
const decode = (authorization = '') => atob(/^Basic ([\w+/=]+)$/.exec(authorization)?.[1] ?? '')

const listen = (server: Server, host: string, port: number) =>
  new Promise<void>((resolve, reject) => server.once('error', reject).listen({ host, port }, resolve))

function certificates(host: string) {
  const make = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const [authority, own] = [make(), make()]
  const issuer = { name: 'Keys', privateKey: authority.privateKey }
  const times = { from: new Date(Date.now() - DAY_MS), to: new Date(Date.now() + DAY_MS), issuer }
  return {
    ca: makeCertificate({ name: issuer.name, publicKey: authority.publicKey, ...times }),
    cert: makeCertificate({ name: host, publicKey: own.publicKey, host, ...times }),
    privateKey: own.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
}
