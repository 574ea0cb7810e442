/** A real way in to agents for tests, on loopback. */
import type { TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { WayIn, type WayInOptions } from '../../src/host/way-in.ts'
import { createLogger } from '../../src/log.ts'

export const HOST_KEY = 'the-key-of-the-way-in-as-tests-know-it'

export interface StartedWayIn {
  url: string
  port: number
  wayIn: WayIn
  registry: Registry
  /** What the log has, one JSON line each. */
  lines: string[]
}

/** A way in that leads to loopback, to be closed by the test. */
export async function openWayIn(options: Partial<WayInOptions> = {}): Promise<StartedWayIn> {
  const lines: string[] = []
  const log = createLogger('test', 'debug', { write: (line: string) => void lines.push(line) })
  const registry = new Registry()
  const { limits, ...rest } = options
  const wayIn = new WayIn({
    key: HOST_KEY,
    networks: ['127.0.0.0/8'],
    log,
    registry,
    limits: { drainMs: 50, ...limits },
    ...rest,
  })
  const settings = { host: 'BERTH_HOST_ADDRESS', port: 'BERTH_HOST_PORT' }
  const port = await wayIn.listen({ host: '127.0.0.1', port: 0, settings })
  return { url: `http://127.0.0.1:${port}`, port, wayIn, registry, lines }
}

/** {@link openWayIn}, closed when the test ends. */
export async function startWayIn(t: TestContext, options?: Partial<WayInOptions>): Promise<StartedWayIn> {
  const started = await openWayIn(options)
  t.after(() => started.wayIn.close())
  return started
}
