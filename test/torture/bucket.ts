/** A bucket for the blocks of a Berth under test, and the test's own view of them. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createPool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import type { Network, Storage } from '../../src/storage/port.ts'
import { startBlocks } from '../support/s3.ts'

const HOUR_MS = 3_600_000

export interface TestBucket {
  /** Settings of the Berth. */
  env: NodeJS.ProcessEnv
  /** A node that reads the same blocks. */
  open(network: Network): Storage
  /** Multihashes of all blocks, in hexadecimal. */
  blocks(network: Network): Promise<Set<string>>
  /** Objects without a row, which no collection would find. */
  strays(network: Network): Promise<string[]>
  stop(): Promise<void>
}

export async function startBucket(databaseUrl: string): Promise<TestBucket> {
  const [{ createBucketPlace }, { createEmbeddedStorage }] = await Promise.all([
    import('../../src/storage/embedded/bucket/place.ts'),
    import('../../src/storage/embedded.ts'),
  ])
  const { env, folder, stop: stopS3 } = await startBlocks()
  Object.assign(process.env, env)
  const log = createLogger('torture', 'silent')
  const pool = createPool(databaseUrl, 2, log)
  const stops: (() => Promise<void>)[] = []
  return {
    env,
    open(network) {
      const place = createBucketPlace({
        network,
        bucket: 'blocks',
        prefix: `of/${network}/`,
        pathStyle: true,
        databaseUrl,
        graceMs: HOUR_MS,
        markExpiryMs: HOUR_MS,
        // Nothing that S3 has lost is found in a cache.
        cacheBytes: 1,
        log,
      })
      const storage = createEmbeddedStorage({ dir: '/nowhere', network, place, offline: true })
      let stopped: Promise<void> | undefined
      const stop = () => {
        stopped ??= storage.stop()
        return stopped
      }
      stops.push(stop)
      return { ...storage, stop }
    },
    async blocks(network) {
      const { rows } = await pool.query<{ hash: string }>(
        `SELECT encode(hash, 'hex') AS hash FROM node_block WHERE network = $1`,
        [network],
      )
      return new Set(rows.map(({ hash }) => hash))
    },
    async strays(network) {
      const names = await readdir(join(folder, 'of', network)).catch(() => [])
      const ids = names.filter((name) => name.endsWith('.car')).map((name) => name.slice(0, -'.car'.length))
      const { rows } = await pool.query<{ id: string }>('SELECT id FROM node_pack WHERE id = ANY ($1)', [ids])
      const known = new Set(rows.map(({ id }) => id))
      return ids.filter((id) => !known.has(id))
    },
    async stop() {
      for (const stop of stops) await stop()
      await pool.end()
      await stopS3()
    },
  }
}
