import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '../../src/lib/net/bind.ts'
import { settings } from '../../src/settings.ts'
import { run } from '../../test/support/processes.ts'
import type { RealParts } from './real-parts.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const CLI = fileURLToPath(new URL('../../bin/berth.mjs', import.meta.url))

/** An operation as `/v0/operations/{id}/events` sends it, as far as the demo reads it. */
export interface Operation {
  state: 'queued' | 'running' | 'succeeded' | 'failed' | 'canceled'
  step: string | null
  progress: { blocks: number; bytes: number; total_bytes: number | null } | null
  error: string | null
}

/** A response that a demo did not expect. */
export class UnexpectedAnswer extends Error {
  readonly status: number

  constructor(request: string, status: number, body: string) {
    super(`${request}: ${status} ${body}`)
    this.status = status
  }
}

/** A running Berth, reached by its HTTP API. */
export interface Berth {
  url: string
  /** An API key with all scopes. */
  key: string
  pinByCid(
    request: { cid: string; name: string; host_nodes: string[] },
    signal: AbortSignal,
  ): Promise<{ id: string; status: string; operationId: string }>
  /** Yields the operation now and after each change, until it has succeeded. Throws if it fails. */
  follow(operationId: string, signal: AbortSignal): AsyncGenerator<Operation>
  file(id: string, signal: AbortSignal): Promise<{ files: number; size: number }>
  /** Host name of the gateway that every workspace has from its creation. */
  gateway(signal: AbortSignal): Promise<string>
  /** Sends any request, with JSON both ways. Throws {@link UnexpectedAnswer} for a status other than 2xx. */
  request(
    method: string,
    path: string,
    options: { signal: AbortSignal; body?: unknown; headers?: Record<string, string> | undefined },
  ): Promise<Response>
}

/** `npm start` in a new folder, on a free port, with the embedded parts unless others are given. */
export async function startBerth(options: {
  dataDir: string
  parts: RealParts | undefined
  stack: AsyncDisposableStack
  signal: AbortSignal
  /** Settings in addition to those of every demo. */
  env?: NodeJS.ProcessEnv
}): Promise<Berth> {
  const { dataDir, parts, stack, signal } = options
  const port = await freePort()
  const env: NodeJS.ProcessEnv = {
    ...withoutSettings(process.env),
    BERTH_DATA_DIR: dataDir,
    PORT: String(port),
    // The second node is on this machine, and no other node is asked for the content.
    BERTH_ALLOW_PRIVATE_HOST_NODES: 'true',
    BERTH_IPFS_ROUTING_URL: '',
    ...parts?.env,
    ...options.env,
  }
  const supervisor = run(process.execPath, [MAIN, 'start'], { env, group: true })
  stack.defer(() => supervisor.end('SIGINT'))
  const url = `http://127.0.0.1:${port}`
  while (!(await isReady(url))) {
    if (supervisor.process.exitCode !== null) throw new Error(`Berth ended:\n${supervisor.output()}`)
    await delay(50, undefined, { signal })
  }
  const args = ['keys', 'create', '--scopes', 'admin,instance:write']
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args], { env, signal })
  return client(url, stdout.trim())
}

function client(url: string, key: string): Berth {
  const request: Berth['request'] = async (method, path, { signal, body, headers }) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
      signal,
    })
    if (response.ok) return response
    throw new UnexpectedAnswer(`${method} ${path}`, response.status, await response.text())
  }
  const call = (path: string, signal: AbortSignal, body?: unknown) =>
    request(body ? 'POST' : 'GET', path, { signal, body })
  return {
    request,
    url,
    key,
    async pinByCid(request, signal) {
      const response = await call('/v3/files/public/pin_by_cid', signal, request)
      const { data } = (await response.json()) as { data: { id: string; status: string } }
      return { ...data, operationId: response.headers.get('operation-id') ?? '' }
    },
    async *follow(operationId, signal) {
      const response = await call(`/v0/operations/${operationId}/events`, signal)
      let last: Operation | undefined
      for await (const data of serverSentData(response)) {
        last = JSON.parse(data) as Operation
        yield last
      }
      if (last?.state !== 'succeeded') throw new Error(`The operation ${last?.state}: ${last?.error}`)
    },
    async file(id, signal) {
      const response = await call(`/v3/files/public/${id}`, signal)
      const { data } = (await response.json()) as { data: { number_of_files: number; size: number } }
      return { files: data.number_of_files, size: data.size }
    },
    async gateway(signal) {
      const response = await call('/v3/gateways', signal)
      const { data } = (await response.json()) as { data: { rows: { host: string }[] } }
      if (!data.rows[0]) throw new Error('The workspace has no gateway')
      return data.rows[0].host
    },
  }
}

/** The `data:` of each event (WHATWG HTML, 9.2); Berth's are one line each. */
async function* serverSentData(response: Response): AsyncGenerator<string> {
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (text + chunk).split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: ')) yield line.slice('data: '.length)
  }
}

/** It is ready when all its parts are, including the worker and its IPFS node. */
async function isReady(url: string): Promise<boolean> {
  const response = await fetch(`${url}/readyz`).catch(() => undefined)
  if (!response) return false
  const { status } = (await response.json()) as { status: string }
  return status === 'ok'
}

/** The demo shows Berth's defaults, whatever is set in the shell that runs it. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const names = Object.keys(settings.shape)
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !names.includes(name.replace(/_FILE$/, ''))),
  )
}
