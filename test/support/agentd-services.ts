/** Serves services of agentd over HTTP, like its main program, with a gateway that the test describes. */
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GatewayClient } from '../../agentd/gateway-client.ts'
import { Log } from '../../agentd/logs.ts'
import { agentPaths } from '../../agentd/paths.ts'
import type { AgentdConfig } from '../../agentd/protocol.ts'
import { type Agent, AgentdServer, type GatewayHandle, type Service } from '../../agentd/server.ts'

const TOKEN = 'token of agentd'

export interface ServedAgentd {
  agent: Agent
  port: number
  headers: { authorization: string }
  /** Sends a request with agentd's token; resolves to its response, unread. */
  send(
    method: string,
    path: string,
    options?: { body?: string | Buffer | undefined; headers?: RequestOptions['headers'] },
  ): Promise<IncomingMessage>
  /** Sends JSON and reads JSON. */
  json(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }>
  close(): Promise<void>
}

/** @param gateway as the services see it; by default, a gateway that never started. */
export async function serveAgentd(
  services: ((agent: Agent) => Service)[],
  gateway: Partial<GatewayHandle> = {},
): Promise<ServedAgentd> {
  const folder = await mkdtemp(join(tmpdir(), 'agentd-'))
  const home = join(folder, 'home')
  await mkdir(join(home, 'clawd'), { recursive: true })
  const config: AgentdConfig = {
    agentId: 'xtest001',
    host: '127.0.0.1',
    port: 0,
    tokenHash: createHash('sha256').update(TOKEN).digest('hex'),
    home,
    engineDir: join(folder, 'engine'),
    gatewayPort: gateway.port ?? 1,
    diskBytes: 1e9,
  }
  const log = new Log()
  const unstarted = { port: 1, state: 'stopped', token: null, env: { PATH: process.env.PATH ?? '' } }
  // The test's own object, which the test may change later.
  const handle = Object.assign(gateway, { ...unstarted, ...gateway }) as GatewayHandle
  const engine = new GatewayClient(handle)
  const agent: Agent = { config, paths: agentPaths(home), gateway: handle, engine, log }
  const made = services.map((service) => service(agent))
  const server = new AgentdServer({ config, log, services: made })
  const port = await server.listen('127.0.0.1', 0)
  const headers = { authorization: `Bearer ${TOKEN}` }

  const send: ServedAgentd['send'] = (method, path, options = {}) =>
    new Promise((resolve, reject) => {
      const sent = request({ port, method, path, headers: { ...headers, ...options.headers } })
      sent.once('response', resolve).once('error', reject).end(options.body)
    })
  return {
    agent,
    port,
    headers,
    send,
    async json(method, path, body) {
      const response = await send(method, path, body === undefined ? {} : { body: JSON.stringify(body) })
      return { status: response.statusCode ?? 0, body: JSON.parse((await readAll(response)).toString()) }
    },
    async close() {
      await server.close()
      for (const service of made) await service.stop?.()
      engine.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export async function readAll(response: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await response.toArray())
}
