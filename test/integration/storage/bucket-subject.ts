/** Embedded nodes whose blocks are in a bucket of a test's S3 server. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type BucketPlaceOptions, createBucketPlace } from '../../../src/storage/embedded/bucket/place.ts'
import { createEmbeddedStorage, markExpiryOf } from '../../../src/storage/embedded.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { type S3Server, startS3 } from '../../support/s3.ts'
import { type NodeProcess, startNodeProcess, temporaryFolder } from './node-process.ts'

interface BucketSettings {
  graceMs?: number
  writeSeconds?: number
  cacheBytes?: number
  /** Bytes of the cache on disk, which all nodes share; 0 unless given. */
  diskBytes?: number
  databaseUrl?: string
  limits?: BucketPlaceOptions['limits']
}

export interface BucketWorld {
  database: Omit<TestDatabase, 'createWorkspace'>
  s3: S3Server
  /** Settings with which other processes reach the bucket. */
  env: Record<string, string>
  /** A node on the bucket. */
  open(options?: BucketSettings): Promise<Storage>
  /** The same in another process. */
  start(options?: BucketSettings, env?: Record<string, string>): Promise<NodeProcess>
  /** The folder that has the objects of the node as files. */
  objects: string
  /** The folder of the cache on disk. */
  cache: string
  /** Makes all times of the rows older, and the marks of processes that were killed with them. */
  age(hours: number): Promise<void>
  /** How many packs the bucket has, and their rows. */
  count(): Promise<{ objects: number; packs: number; blocks: number; inRows: number }>
  stop(): Promise<void>
}

const BUCKET = 'blocks'

/** @param given a migrated database instead of one for tests; the world stops it. */
export async function startBucketWorld(given?: Omit<TestDatabase, 'createWorkspace'>): Promise<BucketWorld> {
  const database = given ?? (await startDatabase())
  const s3 = await startS3()
  const folder = await s3.createBucket(BUCKET)
  const { dir, remove } = await temporaryFolder()
  Object.assign(process.env, s3.env)
  const opened: Storage[] = []
  const started: NodeProcess[] = []
  const cache = join(dir, 'cache')
  const settingsOf = ({
    graceMs = 3_600_000,
    cacheBytes = 16 * 1024 * 1024,
    diskBytes = 0,
    ...more
  }: BucketSettings) => ({
    network: 'public' as const,
    bucket: BUCKET,
    prefix: 'of/berth/',
    pathStyle: true,
    databaseUrl: database.url,
    ...more,
    graceMs,
    markExpiryMs: markExpiryOf(graceMs),
    cacheBytes,
    ...(diskBytes > 0 && { files: { folder: cache, maxBytes: diskBytes, reserveBytes: 0 } }),
  })
  return {
    database,
    s3,
    objects: `${folder}/of/berth`,
    cache,
    env: { ...s3.env, BERTH_BLOCKS_S3_URL: `s3://${BUCKET}/of/berth`, BERTH_S3_PATH_STYLE: 'true' },
    async open(settings = {}) {
      const place = createBucketPlace({ ...settingsOf(settings), log: database.log })
      const storage = createEmbeddedStorage({ dir, network: 'public', allowPrivate: true, place })
      opened.push(storage)
      await storage.start()
      return storage
    },
    async start(settings = {}, env = {}) {
      const node = await startNodeProcess(dir, { bucket: settingsOf(settings) }, env)
      started.push(node)
      return node
    },
    async age(hours) {
      await database.pool.query(`UPDATE node_pack SET changed_at = changed_at - $1 * interval '1 hour'`, [
        hours,
      ])
      await database.pool.query(`UPDATE node_block SET used_at = used_at - $1 * interval '1 hour'`, [hours])
      await database.pool.query(
        `UPDATE node_mark SET renewed_at = renewed_at - $1 * interval '1 hour', started_at = started_at - $1 * interval '1 hour'`,
        [hours],
      )
    },
    async count() {
      const names = await readdir(`${folder}/of/berth`).catch(() => [])
      const { rows } = await database.pool.query<{ packs: number; blocks: number; inRows: number }>(
        `SELECT (SELECT count(*)::int FROM node_pack) AS packs, (SELECT count(*)::int FROM node_block) AS blocks,
          (SELECT count(*)::int FROM node_block WHERE pack_id IS NULL AND NOT is_node) AS "inRows"`,
      )
      const objects = names.filter((name) => name.endsWith('.car')).length
      return { objects, ...(rows[0] ?? { packs: 0, blocks: 0, inRows: 0 }) }
    },
    async stop() {
      for (const node of started) await node.kill()
      for (const storage of opened) await storage.stop()
      await s3.stop()
      await remove()
      await database.stop()
    },
  }
}
