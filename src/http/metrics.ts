/** Prometheus metrics: of this process, and of the whole deployment as PostgreSQL knows it. */
import type { RequestHandler } from 'express'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Pool } from '../db/pool.ts'
import { type Route, route } from './route.ts'
import { shared } from './shared.ts'

const CACHE_MS = 2000

export function createMetrics(pool: Pool): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const countOperations = shared(CACHE_MS, () =>
    pool.query(
      `SELECT kind, state, count(*)::int AS count FROM operation WHERE state IN ('queued', 'running') GROUP BY 1, 2`,
    ),
  )
  const countCorrections = shared(CACHE_MS, () =>
    pool.query('SELECT loop, reason, count(*)::int AS count FROM correction GROUP BY 1, 2'),
  )

  new Gauge({
    name: 'berth_operations',
    help: 'Unfinished operations by kind and state.',
    labelNames: ['kind', 'state'],
    registers,
    async collect() {
      const { rows } = await countOperations()
      this.reset()
      for (const { kind, state, count } of rows) this.set({ kind, state }, count)
    },
  })
  new Counter({
    name: 'berth_corrections_total',
    help: 'What the reconcilers put right, by loop and reason.',
    labelNames: ['loop', 'reason'],
    registers,
    async collect() {
      const { rows } = await countCorrections()
      this.reset()
      for (const { loop, reason, count } of rows) this.inc({ loop, reason }, count)
    },
  })
  new Gauge({
    name: 'berth_database_connections',
    help: "Connections of this process's pool.",
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'total' }, pool.totalCount)
      this.set({ state: 'idle' }, pool.idleCount)
      this.set({ state: 'waiting' }, pool.waitingCount)
    },
  })
  return registry
}

/** Times every request by route, never by path: ids would make a series each. */
export function requestTimer(registry: Registry): RequestHandler {
  const duration = new Histogram({
    name: 'berth_http_request_seconds',
    help: 'Time from a request to the end of its answer, by method and status.',
    labelNames: ['method', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30, 300],
    registers: [registry],
  })
  return (req, res, next) => {
    const start = performance.now()
    res.once('finish', () => {
      duration.observe({ method: req.method, status: res.statusCode }, (performance.now() - start) / 1000)
    })
    next()
  }
}

export function metricsRoute(registry: Registry): Route {
  return route({
    method: 'get',
    path: '/metrics',
    id: 'metrics',
    tag: 'Health',
    summary: 'Metrics for Prometheus',
    description: 'Without a key, because scrapers have none: keep it from the public at the reverse proxy.',
    scope: null,
    success: { status: 200, description: 'The text exposition format.', mediaType: 'text/plain' },
    async handle({ res }) {
      res.set('content-type', registry.contentType).send(await registry.metrics())
      return undefined
    },
  })
}
