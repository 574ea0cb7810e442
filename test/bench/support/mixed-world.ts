/** Two `web` and four `worker` processes on PostgreSQL, Redis and Kubo of their own, with many older files. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { KeyService } from '../../../src/accounts/keys.ts'
import { setRole } from '../../../src/accounts/members.ts'
import { makeIndexes } from '../../../src/db/late-indexes.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { createPool, type Pool } from '../../../src/db/pool.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { createLogger } from '../../../src/log.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { freePort, type Running, run, until } from '../../support/processes.ts'
import { type Server, startPostgres, startRedis } from '../../support/servers.ts'
import type { Tenant } from './mixed-requests.ts'
import { findProcess, processorSeconds, sumOfTree } from './process-use.ts'
import { fileId, fillLarge, LARGE_WORKSPACE, SMALL_WORKSPACE } from './scale-rows.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const WEBS = 2
const WORKERS = 4
/** Workspaces of the requests, half of which go to the large one. There is a small one for three thousand files. */
const SMALL_TENANTS = 7
const FILES_OF_A_TENANT = 3000
const FILL_MS = 3_600_000

/** The older rows have no content here: their pins end, and the agents get no worker. */
const END_OLDER_PINS = [
  `UPDATE operation SET state = 'failed', error_code = 'expired', finished_at = now() WHERE state IN ('queued', 'running')`,
  `UPDATE file SET status = 'expired' WHERE status IN ('searching', 'backfilled')`,
  'VACUUM ANALYZE',
]

export interface MixedWorld {
  urls: string[]
  tenants: Tenant[]
  pool: Pool
  postgres: Server
  redis: Server
  kubo: KuboNode | undefined
  /** The node of the workers, from outside. */
  storage: Storage
  /** Processes that have ended by themselves, with their last output. */
  ended(): string[]
  /** Berth's processes by name. */
  roles: Roles
  /** Seconds of processor time so far, of these roles, the servers and the load generator. */
  processorTimes(roles: Roles): Promise<Map<string, number>>
}

export type Roles = ReadonlyMap<string, Running>

/** Ends processes together. */
export const endAll = async (roles: Roles): Promise<void> =>
  void (await Promise.all([...roles.values()].map((role) => role.end())))

/** @param files that the database has before. The stack stops everything. */
export async function startMixedWorld(files: number, stack: AsyncDisposableStack): Promise<MixedWorld> {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-mixed-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const postgres = await startPostgres(undefined, { shared_buffers: '768MB' })
  stack.defer(() => postgres.stop())
  const redis = await startRedis()
  stack.defer(() => redis.stop())
  const kubo = kuboBinary ? await startKubo() : undefined
  if (kubo) stack.defer(() => kubo.stop())

  const pool = createPool(postgres.url, 4, createLogger('bench', 'silent'))
  stack.defer(() => pool.end())
  await fill(postgres.url, pool, files)
  const jwtKey = randomBytes(32).toString('hex')
  const tenants = await createTenants(pool, jwtKey, files)
  console.log(`  ${files.toLocaleString('en')} files are there`)

  const env = {
    ...process.env,
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    ...(kubo && { IPFS_API_URL: kubo.apiUrl }),
    JWT_KEY: jwtKey,
    BERTH_DATA_DIR: dataDir,
    BERTH_IPFS_ROUTING_URL: '',
    // Files only: the rows of agents have no sandboxes, and those of older files no content.
    BERTH_QUEUES: 'pins,repairs,storage,webhooks',
    BERTH_INTERVALS: 'reconcile=86400',
  }
  const running = new Map<string, Running>()
  const urls: string[] = []
  stack.defer(() => endAll(running))
  for (let i = 1; i <= WEBS; i++) {
    const port = await freePort()
    urls.push(`http://127.0.0.1:${port}`)
    running.set(`web ${i}`, run(process.execPath, [MAIN, 'web'], { env: { ...env, PORT: String(port) } }))
  }
  for (let i = 1; i <= WORKERS; i++)
    running.set(`worker ${i}`, run(process.execPath, [MAIN, 'worker'], { env }))
  const ended = () =>
    [...running]
      .filter(([, { process }]) => process.exitCode !== null || process.signalCode !== null)
      .map(([name, role]) => `${name}: ${role.output().slice(-2000)}`)
  await until('all processes are ready', async () => {
    if (ended().length > 0) return true
    for (const url of urls) if (!(await fetch(`${url}/readyz`)).ok) return false
    const { rowCount } = await pool.query(`SELECT FROM worker WHERE seen_at > now() - interval '10 s'`)
    return rowCount === WORKERS
  })
  if (ended().length > 0) throw new Error(ended().join('\n'))

  const pidsOf = async (roles: Roles) => {
    const pids = new Map([...roles].map(([name, role]) => [name, role.process.pid ?? 0]))
    pids.set('PostgreSQL', await findProcess('postgres', `-p\0${new URL(postgres.url).port}\0`))
    pids.set('Redis', await findProcess('redis-server', `:${new URL(redis.url).port}`))
    if (kubo) pids.set('Kubo', await findProcess('daemon', `IPFS_PATH=${kubo.repo}`))
    return pids
  }
  const storage = kubo
    ? createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' })
    : createEmbeddedStorage({ dir: join(dataDir, 'ipfs/public'), network: 'public', offline: true })
  stack.defer(() => storage.stop())
  return {
    urls,
    tenants,
    pool,
    postgres,
    redis,
    kubo,
    storage,
    ended,
    async processorTimes(roles) {
      const times = new Map<string, number>()
      for (const [name, pid] of await pidsOf(roles)) times.set(name, await sumOfTree(pid, processorSeconds))
      const { user, system } = process.cpuUsage()
      times.set('load generator', (user + system) / 1e6)
      return times
    },
    roles: running,
  }
}

async function fill(url: string, pool: Pool, files: number): Promise<void> {
  await migrate(pool)
  await pool.query(
    `INSERT INTO workspace (id, name, plan) VALUES ($1, 'large', 'unlimited'), ($2, 'small', 'unlimited')`,
    [LARGE_WORKSPACE, SMALL_WORKSPACE],
  )
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await fillLarge(client, files)
    for (const statement of END_OLDER_PINS) await client.query(statement)
  } finally {
    await client.end()
  }
  await makeIndexes(pool, AbortSignal.timeout(FILL_MS))
}

/** The large workspace as often as all others together. */
async function createTenants(pool: Pool, jwtKey: string, files: number): Promise<Tenant[]> {
  const prisma = createPrisma(pool)
  const keys = new KeyService(prisma, new TextEncoder().encode(jwtKey))
  const tenantOf = async (workspaceId: string): Promise<Tenant> => {
    await pool.query(
      `INSERT INTO workspace (id, name, plan) VALUES ($1::uuid, $1::uuid::text, 'unlimited') ON CONFLICT DO NOTHING`,
      [workspaceId],
    )
    const { id: userId } = await setRole(prisma, { workspaceId, user: 'bench', role: 'owner' })
    const key = { workspaceId, userId, name: 'bench', scopes: ['admin' as const], expiresAt: null }
    const { token } = await keys.create(key)
    const { rows } = await pool.query<{ id: string }>(
      `SELECT id FROM file WHERE workspace_id = $1 AND status = 'pinned' AND id >= $2 ORDER BY id LIMIT 1000`,
      [workspaceId, fileId(Math.floor(Math.random() * files * 0.5))],
    )
    if (rows.length === 0) throw new Error(`the workspace ${workspaceId} has no files`)
    return {
      // The second is for the bare alternative, which has no keys.
      headers: { authorization: `Bearer ${token}`, workspace: workspaceId },
      olderFile: () => (rows[Math.floor(Math.random() * rows.length)] as { id: string }).id,
    }
  }
  const small = Math.min(SMALL_TENANTS, Math.floor(files / FILES_OF_A_TENANT))
  const tenants: Tenant[] = []
  for (let i = 0; i < small; i++) tenants.push(await tenantOf(SMALL_WORKSPACE.replace(/0$/, i.toString(16))))
  const large = await tenantOf(LARGE_WORKSPACE)
  return [...tenants, ...Array<Tenant>(small).fill(large)]
}
