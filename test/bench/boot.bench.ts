/**
 * The first boot of an engine as a process: with the code that Berth has compiled for all agents, against an engine as
 * it was installed, which keeps its code in a new home.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compiledFolder } from '../../agentd/compiled.ts'
import { compiledEngine } from '../support/engines.ts'
import { freePort, run, until } from '../support/processes.ts'
import { bareConfig, gatewayConfig } from './support/bare-gateway.ts'
import { median } from './support/numbers.ts'
import { processorSeconds, sumOfTree } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Boot'

const ROUNDS = 3
const READY_MS = 120_000

interface Boot {
  /** Seconds until the gateway is ready. */
  ready: number
  /** Seconds of processor time until then. */
  processor: number
}

export async function bench(): Promise<Result[]> {
  const engine = await compiledEngine()
  const compiled: Boot[] = []
  const installed: Boot[] = []
  for (let round = 0; round < ROUNDS; round++) {
    compiled.push(await boot(engine, compiledFolder(engine)))
    installed.push(await boot(engine))
  }
  const row = (what: string, key: keyof Boot): Result => ({
    what,
    berth: `${median(compiled.map((one) => one[key])).toFixed(1)} s`,
    bare: `${median(installed.map((one) => one[key])).toFixed(1)} s`,
    ratio: median(compiled.map((one, n) => one[key] / (installed[n]?.[key] ?? Number.NaN))),
  })
  return [
    row('the first boot of a compiled engine, processor time', 'processor'),
    row('the same, until it is ready', 'ready'),
  ]
}

/** @param code folder of Node's compile cache; in the new home by default. */
async function boot(engine: string, code?: string): Promise<Boot> {
  const home = await mkdtemp(join(tmpdir(), 'berth-boot-'))
  const port = await freePort()
  const gateway = gatewayConfig(port, 'loopback', randomUUID())
  await mkdir(join(home, '.openclaw'))
  const config = { ...bareConfig('http://127.0.0.1:9/v1'), gateway }
  await writeFile(join(home, '.openclaw/openclaw.json'), JSON.stringify(config))
  const began = performance.now()
  const program = join(engine, 'node_modules/openclaw/openclaw.mjs')
  const running = run(process.execPath, [program, 'gateway', 'run', '--port', String(port)], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      NODE_COMPILE_CACHE: code ?? join(home, '.cache/node'),
      OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED: '1',
    },
  })
  try {
    await until(
      'the gateway is ready',
      async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok,
      READY_MS,
    )
    const ready = (performance.now() - began) / 1000
    return { ready, processor: await sumOfTree(running.process.pid as number, processorSeconds) }
  } finally {
    await running.end('SIGKILL')
    await rm(home, { recursive: true, force: true, maxRetries: 5 })
  }
}

if (import.meta.main) print(title, await bench())
