/** A stack of docker-compose.yml in a clean clone, on the Docker engine that this process sees. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import type { ContainerInfo } from 'dockerode'
import { docker as engine } from '../support/docker.ts'
import { until } from '../support/processes.ts'

/** On a small machine, a chat waits for a model, and creating an agent for the installation of an engine. */
const REQUEST_MS = 300_000
const COMMAND_MS = 600_000

export interface HttpResponse {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The parsed text, if it is JSON. */
  body: any
}

export interface Call {
  method?: string
  /** The request's `Host`; the API's host by default. */
  host?: string
  key?: string
  json?: unknown
  headers?: Record<string, string>
}

export class ComposeStack {
  readonly project: string
  readonly port: number
  readonly #cwd: string
  readonly #env: NodeJS.ProcessEnv

  /** @param options.env settings in addition to those in `.env` of the clone. */
  constructor(options: { clone: string; project: string; port: number; env?: NodeJS.ProcessEnv }) {
    this.project = options.project
    this.port = options.port
    this.#cwd = options.clone
    this.#env = {
      ...process.env,
      COMPOSE_PROJECT_NAME: options.project,
      PORT: String(options.port),
      ...options.env,
    }
  }

  /** `docker compose <args>`; resolves to its output. */
  compose(...args: string[]): Promise<string> {
    return command('docker', ['compose', ...args], { cwd: this.#cwd, env: this.#env })
  }

  /** `berth <args>` in a role's container. */
  berth(role: string, ...args: string[]): Promise<string> {
    return this.compose('exec', '-T', role, 'node', 'bin/berth.mjs', ...args)
  }

  /** The containers of all services, or of one. */
  #containers(service?: string): Promise<ContainerInfo[]> {
    const label = [`com.docker.compose.project=${this.project}`]
    if (service) label.push(`com.docker.compose.service=${service}`)
    return engine.listContainers({ all: true, filters: { label } })
  }

  /** The health of a service, and the output of its last check. */
  async health(service: string) {
    const [container] = await this.#containers(service)
    assert.ok(container, `${service} has no container`)
    const { Health } = (await engine.getContainer(container.Id).inspect()).State
    return { status: Health?.Status, output: Health?.Log.at(-1)?.Output }
  }

  /** Resolves once everything with a health check is healthy. */
  untilHealthy(ms = 180_000): Promise<unknown> {
    return until(
      `${this.project} is healthy`,
      async () => {
        const containers = await this.#containers()
        return containers.every(
          ({ Labels, Status }) =>
            Labels['com.docker.compose.service'] === 'migrate' || Status.endsWith('(healthy)'),
        )
      },
      ms,
    )
  }

  async call(path: string, { method, host, key, json, headers }: Call = {}): Promise<HttpResponse> {
    const sent = request({
      host: '127.0.0.1',
      port: this.port,
      path,
      method: method ?? (json === undefined ? 'GET' : 'POST'),
      signal: AbortSignal.timeout(REQUEST_MS),
      agent: false,
      headers: {
        ...(host && { host: `${host}:${this.port}` }),
        ...(key && { authorization: `Bearer ${key}` }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    })
    sent.end(json === undefined ? undefined : JSON.stringify(json))
    const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) =>
      sent.once('response', resolve).once('error', reject),
    )
    const body = await text(response)
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: body,
      body: response.headers['content-type']?.includes('json') ? JSON.parse(body) : undefined,
    }
  }
}

/** Runs a program; resolves to its output, and rejects with all its output if it fails. */
export async function command(
  program: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  try {
    const bounds = { timeout: COMMAND_MS, maxBuffer: 64 * 1024 * 1024 }
    const { stdout } = await promisify(execFile)(program, args, { ...options, ...bounds })
    return stdout.trim()
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error })
  }
}

/** The ids or names that Docker lists. */
export async function docker(...args: string[]): Promise<string[]> {
  return (await command('docker', args)).split('\n').filter(Boolean)
}
