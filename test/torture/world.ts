/**
 * A Berth whose processes and servers a test can kill one by one: web, workers and agent proxy; PostgreSQL if it
 * belongs to the world; on backend `redis` also Redis and Kubo. On backend `postgres` the queue is in PostgreSQL, and
 * the IPFS node is embedded; on `s3` its blocks are in S3 as well.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { migrate } from '../../src/db/migrate.ts'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { startDatabase } from '../support/database.ts'
import { type KuboNode, kuboBinary, startKubo } from '../support/kubo.ts'
import { freePort, until } from '../support/processes.ts'
import { withoutS3 } from '../support/s3.ts'
import { type Server, startPostgres, startRedis } from '../support/servers.ts'
import { createAudit } from './audit.ts'
import { startBucket, type TestBucket } from './bucket.ts'
import { Role } from './role.ts'
import { Subject } from './subject.ts'

const LINES = 50

export type Backend = 'postgres' | 'redis' | 's3'
const possible: Backend[] = kuboBinary ? ['postgres', 'redis'] : ['postgres']
const chosen = process.env.BERTH_TORTURE_BACKEND
/** The backends of this run: all that are possible here, or the one of BERTH_TORTURE_BACKEND. */
export const backends = possible.filter((backend) => !chosen || backend === chosen)

/** Those and, if it is possible here, `s3`, for tests of content. */
export const contentBackends: Backend[] = [...backends, ...(withoutS3 ? [] : ['s3' as const])]

export type Database = Pick<Server, 'url' | 'stop'>

export class World extends Subject {
  readonly backend: Backend
  readonly env: NodeJS.ProcessEnv
  readonly postgres: Server | undefined
  readonly redis: Server | undefined
  readonly kubo: KuboNode | undefined
  readonly bucket: TestBucket | undefined
  readonly roles: Role[] = []
  readonly #database: Database
  readonly #dataDir: string

  private constructor(parts: {
    backend: Backend
    dataDir: string
    port: number
    metricsPort: number
    database: Database
    postgres: Server | undefined
    redis: Server | undefined
    kubo: KuboNode | undefined
    bucket: TestBucket | undefined
    env: NodeJS.ProcessEnv
  }) {
    const { backend, dataDir, port, metricsPort, database, postgres, redis, kubo, bucket } = parts
    super({
      url: `http://127.0.0.1:${port}`,
      metricsPort,
      databaseUrl: database.url,
      dataDir,
      ipfsUrl: kubo?.apiUrl,
      storage: bucket?.open('public'),
    })
    this.backend = backend
    this.postgres = postgres
    this.redis = redis
    this.kubo = kubo
    this.bucket = bucket
    this.#database = database
    this.#dataDir = dataDir
    this.env = {
      ...process.env,
      PORT: String(port),
      BERTH_METRICS_PORT: String(metricsPort),
      BERTH_DATA_DIR: dataDir,
      DATABASE_URL: database.url,
      ...(redis && { REDIS_URL: redis.url }),
      ...(kubo && { IPFS_API_URL: kubo.apiUrl }),
      ...bucket?.env,
      BERTH_IPFS_ROUTING_URL: '',
      BERTH_ALLOW_PRIVATE_HOST_NODES: 'true',
      BERTH_INTERVALS: 'reconcile=1',
      BERTH_PINS: 'retrySeconds=0.5',
      ...parts.env,
    }
  }

  /**
   * Starts the servers, one web and as many workers, and `agent-proxy` for agents.
   * @param options.ownPostgres for a test that kills PostgreSQL; all others share the run's server.
   * @param options.database that the test has started instead; the world stops it.
   */
  static async start(
    backend: Backend,
    options: {
      workers?: number
      agentProxy?: boolean
      ownPostgres?: boolean
      database?: Database
      env?: NodeJS.ProcessEnv
    } = {},
  ): Promise<World> {
    const [dataDir, port, metricsPort, postgres, redis, kubo] = await Promise.all([
      mkdtemp(join(tmpdir(), 'berth-torture-')),
      freePort(),
      freePort(),
      options.ownPostgres ? startPostgres() : undefined,
      backend === 'redis' ? startRedis() : undefined,
      backend === 'redis' ? startKubo() : undefined,
    ])
    const database = options.database ?? postgres ?? (await startDatabase())
    const bucket = backend === 's3' ? await startBucket(database.url) : undefined
    const world = new World({
      backend,
      dataDir,
      port,
      metricsPort,
      database,
      postgres,
      redis,
      kubo,
      bucket,
      env: options.env ?? {},
    })
    try {
      await migrate(world.pool)
      await createAudit(world.pool)
      world.roles.push(new Role('web', world.env))
      if (options.agentProxy) world.roles.push(new Role('agent-proxy', world.env))
      for (let i = 0; i < (options.workers ?? 1); i++) world.roles.push(new Role('worker', world.env))
      await world.ready()
      return world
    } catch (error) {
      const output = world.output()
      await world.stop()
      throw new Error(`${(error as Error).message}\n${output}`, { cause: error })
    }
  }

  get web(): Role {
    return this.roles.find(({ name }) => name === 'web') as Role
  }

  get agentProxy(): Role {
    return this.roles.find(({ name }) => name === 'agent-proxy') as Role
  }

  get workers(): Role[] {
    return this.roles.filter(({ name }) => name === 'worker')
  }

  /** The last output of each process. */
  output(): string {
    const lastLines = (text: string) => text.trim().split('\n').slice(-LINES).join('\n')
    return this.roles.map((role) => `--- ${role.name}\n${lastLines(role.output())}`).join('\n')
  }

  /** Starts another worker, and waits until it takes work. */
  async addWorker(): Promise<Role> {
    const { rows } = await this.pool.query<{ at: Date }>('SELECT now() AS at')
    const role = new Role('worker', this.env)
    this.roles.push(role)
    // Rows of killed workers stay for a while, so only a new row shows that this worker runs.
    await until('the new worker runs', async () => {
      const seen = await this.pool.query('SELECT FROM worker WHERE started_at > $1', [rows[0]?.at])
      return (seen.rowCount ?? 0) > 0
    })
    return role
  }

  /** Waits until web responds and every worker has been seen. */
  async ready(): Promise<void> {
    await until('web answers', async () => (await fetch(`${this.url}/readyz`)).ok)
    await this.#workersSeen(this.workers.length)
  }

  /** Restarts a role so that it kills itself at a point of a pin, once. Returns the file that marks it. */
  async arm(role: Role, point: CrashPoint): Promise<string> {
    const mark = join(this.#dataDir, `crash-${point}-${Date.now()}`)
    await this.pool.query('DELETE FROM worker')
    await role.restart({ ...this.env, BERTH_CRASH_AT: `${point}@${mark}` })
    await this.ready()
    return mark
  }

  /** Loses everything that the queue knows. */
  async flushQueue(): Promise<void> {
    if (this.redis) {
      const redis = new Redis(this.redis.url)
      await redis.flushall()
      redis.disconnect()
      return
    }
    const { rows } = await this.pool.query<{ name: string }>(
      `SELECT quote_ident(table_name) AS name FROM information_schema.tables
       WHERE table_schema = 'bullmq' AND table_name <> 'migration'`,
    )
    // TRUNCATE would wait for the workers' open transactions, and block them in the meantime.
    for (const { name } of rows) await this.pool.query(`DELETE FROM bullmq.${name}`)
  }

  /** A plan with this many bytes. */
  async createPlan(name: string, bytes: number): Promise<void> {
    await this.pool.query(
      `INSERT INTO plan (name, channels, custom_domains, pin_by_cid, storage_bytes)
       VALUES ($1, false, false, true, $2)`,
      [name, bytes],
    )
  }

  async stop(): Promise<void> {
    await Promise.all(this.roles.map((role) => role.stop()))
    await this.close()
    await this.bucket?.stop()
    await Promise.all([this.#database, this.redis, this.kubo].map((server) => server?.stop()))
    await rm(this.#dataDir, { recursive: true, force: true })
  }

  async #workersSeen(count: number): Promise<void> {
    await until(`${count} workers run`, async () => {
      const seen = await this.pool.query(`SELECT FROM worker WHERE seen_at > now() - interval '6 s'`)
      return (seen.rowCount ?? 0) >= count
    })
  }
}
