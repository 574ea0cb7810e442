/** Ports for operators' tools: health on BERTH_HEALTH_PORT or BERTH_HEALTH_SOCKET, metrics on BERTH_METRICS_PORT. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { collectDefaultMetrics, Registry, register } from 'prom-client'
import type { Config } from '../config.ts'
import type { Closers } from '../lib/closers.ts'
import { type Binding, bind, bindSocket } from '../lib/net/bind.ts'
import type { Readiness } from '../lib/readiness.ts'
import type { Logger } from '../log.ts'

export interface OperatorPortsOptions {
  config: Config
  log: Logger
  /** Closes the ports together with the rest of the role. */
  parts: Closers
  /** The role's own metrics; /metrics also has metrics of modules and of the process. */
  registry: Registry
  /** For a role without an API that serves /healthz and /readyz. */
  readiness?: Readiness
}

type Paths = Record<string, () => Promise<{ status: number; type: string; body: string }>>

const REQUEST_MS = 10_000
/** Delays of the event loop are measured this often. */
const LAG_MS = 50

/** Opens the configured ports; a single one if they are the same. @throws ConfigError if it cannot listen there. */
export async function openOperatorPorts(options: OperatorPortsOptions): Promise<void> {
  const { config, readiness, registry } = options
  const { HOST, BERTH_HEALTH_PORT: health, BERTH_METRICS_HOST, BERTH_METRICS_PORT: metrics } = config
  const { BERTH_HEALTH_SOCKET: socket } = config
  // The default of 10 ms wakes an idle process a hundred times a second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_MS })
  const metricsPaths: Paths = {
    '/metrics': async () => {
      // The default registry has the counters that modules declare.
      const all = Registry.merge([registry, register])
      return { status: 200, type: all.contentType, body: await all.metrics() }
    },
  }
  let isOpen = false
  if (readiness && socket) {
    await open('health socket', healthPaths(readiness), { socket, setting: 'BERTH_HEALTH_SOCKET' }, options)
  } else if (readiness && health !== undefined) {
    isOpen = health !== 0 && health === metrics && HOST === BERTH_METRICS_HOST
    const paths = { ...healthPaths(readiness), ...(isOpen && metricsPaths) }
    const settings = { host: 'HOST', port: 'BERTH_HEALTH_PORT' }
    await open('health port', paths, { host: HOST, port: health, settings }, options)
  }
  if (metrics !== undefined && !isOpen) {
    const settings = { host: 'BERTH_METRICS_HOST', port: 'BERTH_METRICS_PORT' }
    await open('metrics port', metricsPaths, { host: BERTH_METRICS_HOST, port: metrics, settings }, options)
  }
}

function healthPaths(readiness: Readiness): Paths {
  const type = 'application/json'
  return {
    '/healthz': async () => ({ status: 200, type, body: JSON.stringify({ status: 'ok' }) }),
    '/readyz': async () => {
      const report = await readiness.read()
      return { status: report.status === 'down' ? 503 : 200, type, body: JSON.stringify(report) }
    },
  }
}

async function open(
  name: string,
  paths: Paths,
  binding: Binding | { socket: string; setting: string },
  { log, parts }: OperatorPortsOptions,
): Promise<void> {
  const server = createServer({ requestTimeout: REQUEST_MS }, (req, res) => {
    answer(paths, req, res).catch((error) => {
      log.error({ err: error }, `the ${name} failed`)
      res.destroy()
    })
  })
  if ('socket' in binding) {
    await bindSocket(server, binding.socket, binding.setting)
    log.info({ socket: binding.socket }, `the ${name} listens`)
  } else {
    const port = await bind(server, binding)
    log.info({ host: binding.host, port }, `the ${name} listens`)
  }
  parts.add(name, () => {
    server.close()
    server.closeAllConnections()
  })
}

async function answer(paths: Paths, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method !== 'GET') return send(res, 405, 'text/plain', 'GET only\n')
  const find = Object.hasOwn(paths, req.url ?? '') ? paths[req.url ?? ''] : undefined
  if (!find) return send(res, 404, 'text/plain', 'Not found\n')
  const { status, type, body } = await find()
  send(res, status, type, body)
}

function send(res: ServerResponse, status: number, type: string, body: string): void {
  res.statusCode = status
  res.setHeader('Content-Type', type)
  res.end(body)
}
