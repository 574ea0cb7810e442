/** `/healthz` and `/metrics` of the roles that serve no API. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { collectDefaultMetrics, type Registry } from 'prom-client'
import type { Config } from '../config.ts'
import type { Logger } from '../log.ts'
import { bind } from '../net/bind.ts'
import type { Parts } from './parts.ts'

export interface HealthPortOptions {
  log: Logger
  /** Closes the port with the rest of the role. */
  parts: Parts
  /** What /metrics answers, beside the metrics of the process. */
  registry: Registry
  /** Why the role does not do its work; undefined while it does. Without it, to answer is to be healthy. */
  findProblem?(): string | undefined
}

/** Opens BERTH_HEALTH_PORT on HOST, when it is set. @throws ConfigError when it cannot listen there. */
export async function openHealthPort(config: Config, options: HealthPortOptions): Promise<void> {
  const { log, parts, registry, findProblem } = options
  if (config.BERTH_HEALTH_PORT === undefined) return
  collectDefaultMetrics({ register: registry })
  const server = createServer({ requestTimeout: 10_000 }, (req, res) => {
    answer(req, res).catch((error) => {
      log.error({ err: error }, 'the health port failed')
      res.destroy()
    })
  })
  const port = await bind(server, {
    host: config.HOST,
    port: config.BERTH_HEALTH_PORT,
    settings: { host: 'HOST', port: 'BERTH_HEALTH_PORT' },
  })
  log.info({ host: config.HOST, port }, 'the health port listens')
  parts.add('health port', () => {
    server.close()
    server.closeAllConnections()
  })

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.method !== 'GET') return send(res, 405, 'text/plain', 'GET only\n')
    if (req.url === '/metrics') return send(res, 200, registry.contentType, await registry.metrics())
    if (req.url !== '/healthz') return send(res, 404, 'text/plain', 'Not found\n')
    const problem = findProblem?.()
    const body = problem ? { status: 'down', detail: problem } : { status: 'ok' }
    send(res, problem ? 503 : 200, 'application/json', JSON.stringify(body))
  }
}

function send(res: ServerResponse, status: number, type: string, body: string): void {
  res.statusCode = status
  res.setHeader('Content-Type', type)
  res.end(body)
}
