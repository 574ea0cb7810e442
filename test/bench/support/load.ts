/** A load generator: a fixed number of requests over keep-alive connections, each one timed. */
import { Pool } from 'undici'

export interface Target {
  /** Origin, for example `http://127.0.0.1:3000`. */
  url: string
  method: 'GET' | 'POST' | 'DELETE'
  /** Path of the nth request. */
  path: (n: number) => string
  headers?: Record<string, string>
  /** Body of the nth request, as JSON. */
  body?: (n: number) => unknown
}

export interface Load {
  perSecond: number
  /** Milliseconds of each request, ascending. */
  latencies: number[]
}

/**
 * Sends `count` requests with `concurrency` of them in progress at any time.
 * @throws Error for a status other than 200, because a server that refuses would win every benchmark.
 */
export async function load(target: Target, count: number, concurrency: number): Promise<Load> {
  const pool = new Pool(target.url, { connections: concurrency, pipelining: 1 })
  const latencies: number[] = []
  let next = 0
  const client = async () => {
    while (next < count) {
      const n = next++
      const start = performance.now()
      const { statusCode, body } = await pool.request({
        method: target.method,
        path: target.path(n),
        headers: target.headers ?? null,
        body: target.body ? JSON.stringify(target.body(n)) : null,
      })
      const text = await body.text()
      latencies.push(performance.now() - start)
      if (statusCode !== 200) throw new Error(`${target.url}${target.path(n)}: ${statusCode} ${text}`)
    }
  }
  const start = performance.now()
  try {
    await Promise.all(Array.from({ length: concurrency }, client))
  } finally {
    await pool.destroy()
  }
  const seconds = (performance.now() - start) / 1000
  return { perSecond: count / seconds, latencies: latencies.sort((a, b) => a - b) }
}
