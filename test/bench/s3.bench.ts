/**
 * Many small files in an embedded node whose blocks are in S3: requests, rows, memory, reads and garbage collection. The
 * alternative is an object for each file on the same server. Reads and collections are measured among a million rows;
 * beyond `BERTH_TEST_S3_FILES` files, which are uploaded, these are only rows.
 */
import { hash, randomBytes } from 'node:crypto'
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { create as createDigest } from 'multiformats/hashes/digest'
import { sha256 } from 'multiformats/hashes/sha2'
import { uuidv7 } from 'uuidv7'
import { migrate } from '../../src/db/migrate.ts'
import { createPool, type Pool, queryOne } from '../../src/db/pool.ts'
import { beginPack, endPack, putBlocks } from '../../src/db/statements/node-blocks.ts'
import { addRoots } from '../../src/db/statements/node-roots.ts'
import { createS3Client } from '../../src/lib/s3.ts'
import { createLogger } from '../../src/log.ts'
import type { Storage } from '../../src/storage/port.ts'
import { startBucketWorld } from '../integration/storage/bucket-subject.ts'
import { collect } from '../integration/storage/content.ts'
import { startPostgres } from '../support/servers.ts'
import { median, quantile } from './support/numbers.ts'
import { peakBytes, resetPeak } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'
import { ms, time } from './support/time.ts'

const FILES = Number(process.env.BERTH_TEST_S3_FILES ?? 20_000)
const BYTES = 1024
/** Files in PostgreSQL while reads and the collection are measured. */
const ROWS = Math.max(FILES, Number(process.env.BERTH_TEST_S3_ROWS ?? 1_000_000))
/** Objects of the alternative: their costs do not depend on their number. */
const OBJECTS = Math.min(FILES, 20_000)
const AT_ONCE = 64
const READS = 200
/** The share of the files that are deleted before the garbage collection. */
const DELETED = 0.1
const MIB = 1_048_576
/** Files of a pack, and the bytes of each besides its content. */
const PACKED = 4096
const HEAD_BYTES = 40

export const title = `${FILES.toLocaleString('en')} files of 1 KiB in S3, then ${ROWS.toLocaleString('en')} in PostgreSQL`

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const log = createLogger('bench', 'silent')
  const server = await startPostgres(undefined, { shared_buffers: '512MB', max_wal_size: '2GB' })
  const pool = createPool(server.url, 4, log)
  await migrate(pool)
  const stop = async () => {
    await pool.end()
    await server.stop()
  }
  const world = await startBucketWorld({ url: server.url, pool, log, stop })
  ending.defer(() => world.stop())
  await world.s3.createBucket('bare')
  const client = createS3Client({ pathStyle: true, idleMs: 60_000 })
  ending.defer(() => client.destroy())
  const signal = AbortSignal.timeout(7_200_000)

  const cids: CID[] = []
  const storage = await world.open({ cacheBytes: 64 * MIB })
  const wal = await logPosition(pool)
  await resetPeak(process.pid)
  const added = await time(() =>
    repeat(FILES, async (i) => {
      cids[i] = (await storage.add(entry(i), { signal })).cid
    }),
  )
  const [memory, logged] = [await peakBytes(process.pid), (await logPosition(pool)) - wal]
  const stored = await queryOne<{ packs: number; bytes: number; waiting: number }>(
    pool,
    `SELECT count(*)::float8 AS packs, coalesce(sum(bytes), 0)::float8 AS bytes,
       (SELECT count(*)::float8 FROM node_block WHERE bytes IS NOT NULL) AS waiting FROM node_pack`,
  )
  const put = await time(() =>
    repeat(OBJECTS, (i) =>
      client.send(new PutObjectCommand({ Bucket: 'bare', Key: `${i}`, Body: content(i) })),
    ),
  )
  await fillRows(pool, ROWS - FILES)
  await pool.query('VACUUM ANALYZE node_block, node_root, node_mark')
  const tables = await queryOne<{ pages: number; indexes: number }>(
    pool,
    `SELECT sum(pg_table_size(oid)) / 8192 AS pages, sum(pg_indexes_size(oid)) / 8192 AS indexes
     FROM pg_class WHERE relname IN ('node_block', 'node_root', 'node_pack', 'node_mark')`,
  )

  // The latest files still wait in their rows.
  const packed = FILES - stored.waiting
  const sample = Array.from({ length: READS }, (_, i) => Math.floor((i * packed) / READS))
  const objects = sample.map((i) => i % OBJECTS)
  const get = await latencies(objects, async (i) => {
    const { Body } = await client.send(new GetObjectCommand({ Bucket: 'bare', Key: `${i}` }))
    await Body?.transformToByteArray()
  })
  const read = (node: Storage) =>
    latencies(sample, async (i) => {
      const bytes = await collect(node.cat(cids[i] as CID, { signal }))
      if (!bytes.equals(content(i))) throw new Error(`file ${i} is damaged`)
    })
  const fromS3 = await read(await world.open({ cacheBytes: 1 }))
  const onDisk = { cacheBytes: 1, diskBytes: 1024 * MIB }
  await read(await world.open(onDisk))
  const fromDisk = await read(await world.open(onDisk))
  const warm = await world.open({ cacheBytes: 128 * MIB })
  await read(warm)
  const fromMemory = await read(warm)

  const { rowCount } = await pool.query('DELETE FROM node_root WHERE get_byte(sha256(cid::bytea), 0) < $1', [
    Math.round(256 * DELETED),
  ])
  const gone = rowCount ?? 0
  const collector = await world.open({ graceMs: 1 })
  await resetPeak(process.pid)
  const before = process.memoryUsage.rss()
  let removed = 0
  const collected = await time(async () => {
    removed = (await collector.gc({ signal })).removedBlocks
  })
  const collecting = (await peakBytes(process.pid)) - before
  if (removed !== gone) throw new Error(`${removed} blocks of ${gone} files were removed`)

  const perFile = (n: number, of = FILES) => n / of
  const perRow = (pages: number) => ((8192 * Number(pages)) / ROWS).toFixed(0)
  const compared = (what: string, berth: number[], bare = get): Result => ({
    what,
    berth: `${ms(median(berth))}, p99 ${ms(quantile(berth, 0.99))}`,
    bare: `${ms(median(bare))}, p99 ${ms(quantile(bare, 0.99))}`,
    ratio: median(berth) / median(bare),
  })
  return [
    {
      what: 'PUTs per file',
      berth: `${perFile(stored.packs, packed).toPrecision(2)} (${stored.packs} in all, ${stored.waiting} files wait)`,
      bare: '1',
      ratio: perFile(stored.packs, packed),
      goal: { atMost: 0.01 },
    },
    {
      what: 'files stored per second, 64 at a time',
      berth: `${(FILES / (added / 1000)).toFixed(0)} /s (${ms(added)})`,
      bare: `${(OBJECTS / (put / 1000)).toFixed(0)} /s`,
      ratio: perFile(put, OBJECTS) / perFile(added),
    },
    {
      what: 'bytes in S3 per file',
      berth: perFile(stored.bytes, packed).toFixed(0),
      bare: `${BYTES}`,
      ratio: perFile(stored.bytes, packed) / BYTES,
    },
    { what: 'peak memory while storing', berth: megabytes(memory) },
    {
      what: 'PostgreSQL per file',
      berth: `2 rows, ${perRow(tables.pages)} B in tables, ${perRow(tables.indexes)} B in indexes, ${perFile(
        logged,
      ).toFixed(0)} B of WAL`,
    },
    compared('a read from S3', fromS3),
    compared('a read from the disk cache', fromDisk),
    compared('a read from memory', fromMemory),
    {
      what: 'garbage collection after a tenth was deleted',
      berth: `${ms(collected)}, ${removed} blocks, ${megabytes(collecting)} more memory`,
    },
  ]
}

/** Adds the rows of this many files, as uploads leave them once they are in packs. */
async function fillRows(pool: Pool, count: number): Promise<void> {
  for (let from = 0; from < count; from += PACKED) {
    const cids = Array.from({ length: Math.min(PACKED, count - from) }, (_, i) =>
      CID.createV1(raw.code, createDigest(sha256.code, hash('sha256', `${from + i}`, 'buffer'))),
    )
    const id = uuidv7()
    await beginPack.run(pool, id, 'public', PACKED * (BYTES + HEAD_BYTES))
    await endPack.run(pool, id)
    const hashes = cids.map(({ multihash }) => multihash.bytes)
    const [sizes, at] = [cids.map(() => BYTES), cids.map((_, i) => i * BYTES)]
    const [none, isNode] = [cids.map(() => null), cids.map(() => false)]
    await putBlocks.run(pool, 'public', hashes, sizes, id, at, none, isNode, none)
    const roots = cids.map((cid) => `${cid}`)
    await addRoots.run(pool, 'public', roots)
  }
}

/** Runs `work` for 0 … `count` - 1, {@link AT_ONCE} at a time. */
async function repeat(count: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const run = async () => {
    for (let i = next++; i < count; i = next++) await work(i)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, run))
}

async function latencies(of: number[], work: (i: number) => Promise<unknown>): Promise<number[]> {
  const found: number[] = []
  for (const i of of) found.push(await time(() => work(i)))
  return found
}

const NOISE = randomBytes(BYTES)

/** A different file for each number. */
function content(i: number): Buffer {
  const bytes = Buffer.from(NOISE)
  bytes.writeUInt32BE(i)
  return bytes
}

async function* entry(i: number) {
  yield {
    path: 'file',
    content: (async function* () {
      yield content(i)
    })(),
  }
}

const logPosition = async (pool: Pool): Promise<number> =>
  (await queryOne<{ at: number }>(pool, `SELECT (pg_current_wal_lsn() - '0/0')::float8 AS at`)).at

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`

if (import.meta.main) print(title, await bench())
