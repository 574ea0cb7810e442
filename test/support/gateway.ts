/** A reader at a gateway's host: `fetch` cannot set the Host header, and names below `localhost` do not resolve. */
import assert from 'node:assert/strict'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'

const TIMEOUT_MS = 60_000

export interface Served {
  status: number
  headers: IncomingHttpHeaders
  bytes: Buffer
  /** The body as text. */
  readonly text: string
}

export interface GatewayReader {
  /** The gateway's host, with the port at which it is reached here. */
  host: string
  get(path: string, headers?: Record<string, string>): Promise<Served>
  head(path: string, headers?: Record<string, string>): Promise<Served>
  ask(method: string, path: string, headers?: Record<string, string>): Promise<Served>
}

/** @param url of the web process. */
export function gatewayReader(url: string, host: string): GatewayReader {
  const ask: GatewayReader['ask'] = (method, path, headers = {}) =>
    serve(url, method, path, { host, ...headers })
  return {
    host,
    get: (path, headers) => ask('GET', path, headers),
    head: (path, headers) => ask('HEAD', path, headers),
    ask,
  }
}

/** The complete response. Rejects if the connection ends earlier. */
export function serve(
  url: string,
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<Served> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    // The path unchanged: a URL would remove `..` from it.
    const sent = request({ hostname, port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const bytes = Buffer.concat(chunks)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text: `${bytes}` })
      })
    })
    sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)))
    sent.on('error', reject)
    sent.end()
  })
}

/** Sends bytes to the server unchanged; resolves to everything that it returns until it closes the connection. */
export function sendRaw(url: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname, () => socket.write(text))
    let answer = ''
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)))
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

/** Asserts an error response: its status and message, that it is not cached, and that any site may read it. */
export function assertRefused(served: Served, status: number, message: string | RegExp): void {
  assert.equal(served.status, status, served.text)
  const { error } = JSON.parse(served.text)
  if (typeof message === 'string') assert.equal(error, message)
  else assert.match(error, message)
  assert.equal(served.headers['cache-control'], 'no-store')
  assert.equal(served.headers['content-type'], 'application/json; charset=utf-8')
}
