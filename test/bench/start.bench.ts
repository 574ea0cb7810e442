/**
 * `npm start` on the embedded parts: the first start, later ones, and Ctrl-C, compared with the minimum: a PostgreSQL
 * of the distribution that is created or started, then a Node.js server that responds.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, type Running, run, until } from '../support/processes.ts'
import { startPostgres } from '../support/servers.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Start and stop'

const ROUNDS = 5
const START_MS = 300_000
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const BARE = `import { createServer } from 'node:http'
createServer((_, res) => res.end()).listen(0, '127.0.0.1', () => console.log('listening'))`

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-'))
  ending.defer(() => rm(dataDir, { recursive: true, force: true }))
  await chmod(dataDir, 0o711)
  const env = {
    ...process.env,
    // At the first start nothing of an earlier one exists, as on a new machine.
    NODE_COMPILE_CACHE: join(dataDir, 'cache'),
    BERTH_DATA_DIR: dataDir,
    BERTH_BASE_IMAGE: 'none',
    BERTH_IPFS_ROUTING_URL: '',
    PORT: String(await freePort()),
    BERTH_EGRESS_PORT: '0',
  }
  const berth: Round[] = []
  const bare: Round[] = []
  let postgres: Awaited<ReturnType<typeof startPostgres>> | undefined
  ending.defer(() => postgres?.stop())
  // In turns; the first round is the first start of both.
  for (let round = 0; round <= ROUNDS; round++) {
    const server = postgres
    bare.push(
      await measure(
        async () => {
          if (server) await server.restart()
          else postgres = await startPostgres()
          return listening('--input-type=module', '-e', BARE)
        },
        () => postgres?.halt(),
      ),
    )
    berth.push(await measure(() => listening(MAIN, 'start')))
  }
  async function listening(...args: string[]): Promise<Running> {
    const started = run(process.execPath, args, { env })
    const up = /Berth is up|listening\n/
    await until('it is up', () => started.process.exitCode === null && up.test(started.output()), START_MS)
    return started
  }

  const rows: [string, keyof Round, Round[], Round[]][] = [
    ['first start', 'start', berth.slice(0, 1), bare.slice(0, 1)],
    ['later starts', 'start', berth.slice(1), bare.slice(1)],
    ['Ctrl-C, nothing runs', 'stop', berth, bare],
  ]
  return rows.map(([what, key, ours, theirs]) => ({
    what,
    berth: `${median(ours.map((round) => round[key])).toFixed(2)} s`,
    bare: `${median(theirs.map((round) => round[key])).toFixed(2)} s`,
    ratio: median(ours.map((round, n) => round[key] / (theirs[n]?.[key] ?? Number.NaN))),
  }))
}

interface Round {
  /** Seconds until it is up. */
  start: number
  /** Seconds until it has ended. */
  stop: number
}

async function measure(start: () => Promise<Running>, stopRest?: () => unknown): Promise<Round> {
  const began = performance.now()
  const running = await start()
  const up = performance.now()
  await running.end('SIGINT')
  await stopRest?.()
  return { start: (up - began) / 1000, stop: (performance.now() - up) / 1000 }
}

if (import.meta.main) print(title, await bench())
