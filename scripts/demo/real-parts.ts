import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { kuboBinary, startKubo } from '../../test/support/kubo.ts'
import { startPostgres, startRedis } from '../../test/support/servers.ts'

/** PostgreSQL, Redis and a Kubo for each network, each a separate server. */
export interface RealParts {
  /** The settings that make Berth use them. */
  env: NodeJS.ProcessEnv
  kuboUrl: string
  versions: string[]
}

const CLEAN_UP_MS = 5000

/**
 * Starts the servers that `--real` runs on, in temporary folders and on free ports.
 * @throws Error naming what is not installed.
 */
export async function startRealParts(stack: AsyncDisposableStack, signal: AbortSignal): Promise<RealParts> {
  const kuboVersion = await version(
    kuboBinary,
    'BERTH_TEST_KUBO is not set to a Kubo binary: scripts/ci/kubo.sh makes one',
  )
  const redisVersion = await version('redis-server', 'Redis is not installed: apt-get install redis-server')
  const [postgres, redis, kubo, privateKubo] = await Promise.all([
    started(startPostgres(), stack, signal),
    started(startRedis(), stack, signal),
    started(startKubo(), stack, signal),
    started(startKubo(), stack, signal),
  ])
  return {
    env: {
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      IPFS_API_URL: kubo.apiUrl,
      IPFS_PRIVATE_API_URL: privateKubo.apiUrl,
    },
    kuboUrl: kubo.apiUrl,
    versions: ['PostgreSQL', `Redis ${redisVersion}`, `two Kubo ${kuboVersion}`],
  }
}

/** Waits for a server; the stack stops it, even if the demo is interrupted before it is ready. */
async function started<T extends { stop(): Promise<void> }>(
  starting: Promise<T>,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<T> {
  stack.defer(() =>
    Promise.race([starting.then((server) => server.stop()).catch(() => {}), delay(CLEAN_UP_MS)]),
  )
  const interrupted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return Promise.race([starting, interrupted])
}

async function version(binary: string | undefined, missing: string): Promise<string> {
  if (!binary) throw new Error(missing)
  try {
    const { stdout } = await promisify(execFile)(binary, ['--version'])
    return /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? ''
  } catch {
    throw new Error(missing)
  }
}
