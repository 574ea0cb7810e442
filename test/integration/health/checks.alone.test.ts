/** Each check detects its fault, and tells the public nothing else. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { checkAgentProxy } from '../../../src/agent-proxy/checks.ts'
import { loadAgentProxy } from '../../../src/agent-proxy/tunnel-client.ts'
import { loadConfig } from '../../../src/config.ts'
import { createPool } from '../../../src/db/pool.ts'
import {
  checkDatabase,
  checkModelKeys,
  checkRuntime,
  checkSchema,
  checkSecrets,
} from '../../../src/health/checks.ts'
import { checkClock, checkNames, checkPermissions } from '../../../src/health/machine.ts'
import { checkDisk, judgeRoom } from '../../../src/lib/disk.ts'
import { type Finding, Readiness } from '../../../src/lib/readiness.ts'
import { createLogger } from '../../../src/log.ts'
import { openRuntime } from '../../../src/sandboxes/open.ts'
import { NO_OWNER } from '../../../src/sandboxes/owner.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { freePort } from '../../support/processes.ts'
import { AGENT_PROXY_KEY, startTunnelServer } from '../../support/tunnel-server.ts'

const log = createLogger('test', 'silent')
let dir: string
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-health-'))
  await chmod(dir, 0o755)
})
after(() => rm(dir, { recursive: true, force: true }))

/** Runs `work` as a user without access to everything, unlike root. */
async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(65_534)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}

describe('the database', () => {
  let database: TestDatabase
  before(async () => {
    database = await startDatabase()
  })
  after(() => database?.stop())

  it('the database is ok while it answers', async () => {
    assert.deepEqual(await checkDatabase(database.pool), { status: 'ok' })
  })
  it('the database is down if unreachable, and only the operator sees its address', async () => {
    const port = await freePort()
    const pool = createPool(`postgres://berth:hunter2@127.0.0.1:${port}/berth`, 2, log)
    const { status, detail, cause } = await checkDatabase(pool)
    await pool.end()
    assert.deepEqual([status, detail], ['down', 'does not answer'])
    assert.match(cause ?? '', new RegExp(`ECONNREFUSED.*${port}`))
  })
  it('the database reports a refused password', async () => {
    const pool = createPool(database.url.replace(/:[^:@/]*@/, ':wrong@'), 2, log)
    const { status, detail } = await checkDatabase(pool)
    await pool.end()
    assert.deepEqual([status, detail], ['down', 'refuses the user or the password'])
  })
  it('agents that run since before the model gateway are named, to be restarted', async () => {
    const { pool } = database
    const workspaceId = uuidv7()
    const add = (given: object) => insertAgentRow(pool, { workspaceId, ...given })
    await add({ modelKeyHash: randomBytes(32) })
    await add({ status: 'not_running' })
    await add({ deletedAt: new Date() })
    assert.deepEqual(await checkModelKeys(pool), { status: 'ok' })
    const { agentId } = await add({})
    const { status, detail, advice } = await checkModelKeys(pool)
    assert.deepEqual([status, detail], ['degraded', `in the sandboxes of ${agentId}: no budget limits them`])
    assert.match(advice ?? '', /^Restart these agents/)
    for (let i = 0; i < 6; i++) await add({})
    assert.match((await checkModelKeys(pool)).detail ?? '', new RegExp(`${agentId}.* and 2 more: `))
  })
  it('attached secrets that agents can read are named', async () => {
    const { pool } = database
    const workspaceId = uuidv7()
    const insert = async (
      name: string,
      of: { id: string },
      { type = 'secret', hosts = [] as string[] } = {},
    ) => {
      const id = uuidv7()
      await pool.query(
        `INSERT INTO secret (id, workspace_id, user_id, name, type, ciphertext, hosts, brokered_version)
         VALUES ($1, $2, $2, $3, $4, '', $5, 2)`,
        [id, workspaceId, name, type, hosts],
      )
      await pool.query('INSERT INTO agent_secret (agent_id, secret_id) VALUES ($1, $2)', [of.id, id])
      return id
    }
    const hash = { modelKeyHash: randomBytes(32), proxyKeyHash: randomBytes(32) }
    const agent = await insertAgentRow(pool, { workspaceId, ...hash })
    const hosts = ['api.example.com']
    await insert('OPENAI_API_KEY', agent)
    await insert('CITY', agent, { type: 'variable' })
    await insert('GONE', await insertAgentRow(pool, { workspaceId, deletedAt: new Date() }))
    const brokered = await insert('BROKERED', agent, { hosts })
    assert.deepEqual(await checkSecrets(pool), { status: 'ok', detail: 'agents can read none' })
    await insert('PLAIN', agent)
    const process = { workspaceId, modelKeyHash: randomBytes(32) }
    await insert('OF_PROCESS', await insertAgentRow(pool, process), { hosts })
    const named = async () => (await checkSecrets(pool)).detail?.replace(/: hosts keep .*/, '')
    assert.equal(await named(), 'agents can read OF_PROCESS, PLAIN')
    const versions = (version: number) =>
      pool.query('UPDATE agent SET applied_secret_versions = $2 WHERE id = $1', [
        agent.id,
        { [brokered]: version },
      ])
    await versions(1)
    assert.equal(await named(), 'agents can read BROKERED, OF_PROCESS, PLAIN')
    await versions(2)
    for (let i = 0; i < 5; i++) await insert(`P${i}`, agent)
    assert.equal(await named(), 'agents can read OF_PROCESS, P0, P1, P2, P3 and 2 more')
  })
  it('the database schema is ok if current, degraded if newer and down if older', async () => {
    const { pool } = database
    const state = async () => (await checkSchema(pool)).status
    assert.equal(await state(), 'ok')
    await pool.query(`INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at)
      VALUES ('later', '', '9999_later', now())`)
    assert.equal(await state(), 'degraded')
    await pool.query(`DELETE FROM _prisma_migrations WHERE migration_name IN ('9999_later', '0010_health')`)
    assert.equal(await state(), 'down')
    await pool.query('DROP TABLE _prisma_migrations')
    assert.equal(await state(), 'down')
  })
  it('the database’s clock is compared with ours', async (t) => {
    assert.equal((await checkClock(database.pool)).status, 'ok')
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 50_000 })
    const { status, detail } = await checkClock(database.pool)
    assert.equal(status, 'degraded')
    assert.match(detail ?? '', /^(4\d|50)\.\d+ s ahead of PostgreSQL's$/)
  })
})

describe('the agent proxy', () => {
  it('the agent proxy is ok with our key, and down with another key or if it does not answer', async (t) => {
    const way = await startTunnelServer(t)
    const at = (key: string, url = way.url) =>
      loadAgentProxy(loadConfig({ AGENT_PROXY_KEY: key, BERTH_AGENT_PROXY_URL: url }))
    assert.deepEqual(await checkAgentProxy(at(AGENT_PROXY_KEY)), { status: 'ok' })
    assert.equal((await checkAgentProxy(at('k'.repeat(32)))).detail, 'has another AGENT_PROXY_KEY')
    const nobody = await checkAgentProxy(at(AGENT_PROXY_KEY, `http://127.0.0.1:${await freePort()}`))
    assert.equal(nobody.detail, 'does not answer')
  })
})

describe('Docker', () => {
  const check = async (DOCKER_HOST: string, as: typeof asNobody = asNobody) => {
    const config = loadConfig({
      DOCKER_HOST,
      BERTH_RUNTIME: 'docker',
      BERTH_DATA_DIR: dir,
    })
    const runtime = await openRuntime(config, log, NO_OWNER)
    try {
      return await as(() => checkRuntime(runtime, DOCKER_HOST))
    } finally {
      await runtime.close()
    }
  }

  // The driver imports dockerode on first use. The user nobody cannot, if the checkout is in root's home.
  before(() => check('unix:///nowhere', (work) => work()))

  it('Docker is down if this process may not open its socket, and the check names DOCKER_GID', async (t) => {
    const path = join(dir, 'refused.sock')
    const server = createServer().listen(path)
    await once(server, 'listening')
    t.after(() => server.close())
    await chmod(path, 0)
    const { status, detail, advice } = await check(`unix://${path}`)
    assert.deepEqual([status, detail], ['down', 'refuses this process: check DOCKER_GID'])
    assert.match(advice ?? '', new RegExp(`stat -c %g ${path}`))
  })
  it('Docker is down if it is not running, and the check names DOCKER_HOST', async () => {
    const nowhere = await check(`unix://${join(dir, 'nothing.sock')}`)
    assert.deepEqual([nowhere.status, nowhere.detail], ['down', 'is not at DOCKER_HOST'])
    const refused = await check(`tcp://127.0.0.1:${await freePort()}`)
    assert.deepEqual([refused.status, refused.detail], ['down', 'does not answer: check DOCKER_HOST'])
  })
})

describe('the disk', () => {
  const GiB = 1024 ** 3
  it('the disk is judged by its free share if it is small and by its free bytes if it is large', () => {
    assert.equal(judgeRoom({ free: 2 * GiB, size: 10 * GiB }), 'ok')
    assert.equal(judgeRoom({ free: 0.9 * GiB, size: 10 * GiB }), 'degraded')
    assert.equal(judgeRoom({ free: 0.4 * GiB, size: 10 * GiB }), 'down')
    assert.equal(judgeRoom({ free: 11 * GiB, size: 4000 * GiB }), 'ok')
    assert.equal(judgeRoom({ free: 9 * GiB, size: 4000 * GiB }), 'degraded')
    assert.equal(judgeRoom({ free: 1.9 * GiB, size: 4000 * GiB }), 'down')
  })
  it('the disk is judged by the configured reserve', () => {
    assert.equal(judgeRoom({ free: 19 * GiB, size: 4000 * GiB }, 20 * GiB), 'down')
    assert.equal(judgeRoom({ free: 1, size: 10 * GiB }, 0), 'degraded')
  })
  it('the disk check reports a disk below its reserve, with the reserve', async () => {
    const { status, detail, cause } = await checkDisk({ folders: { data: dir }, reserveBytes: 2 ** 60 })
    assert.equal(status, 'down')
    assert.match(detail ?? '', /^data: .+ free of .+, below the reserve of 1024 PiB: nothing new is taken$/)
    assert.equal(cause, dir)
  })
  it('the disk of a missing folder is the disk of its parent', async () => {
    const check = (data: string) => checkDisk({ folders: { data }, reserveBytes: undefined })
    const [here, below] = await Promise.all([check(dir), check(join(dir, 'a/b'))])
    assert.equal(below.status, here.status)
  })
  it('the disk is down if no folder can be created, and the public detail omits the path', async () => {
    const file = join(dir, 'file')
    await writeFile(file, '')
    const { status, detail, cause } = await checkDisk({
      folders: { uploads: join(file, 'uploads') },
      reserveBytes: undefined,
    })
    assert.deepEqual([status, detail], ['down', 'uploads: cannot be written'])
    assert.match(cause ?? '', /ENOTDIR/)
  })
})

describe('the machine', () => {
  it('the machine keeps keys and the data folder from other users', async () => {
    const data = join(dir, 'data')
    await mkdir(data, { mode: 0o711 })
    await writeFile(join(data, 'jwt.key'), 'x', { mode: 0o600 })
    assert.equal((await checkPermissions(data)).status, 'ok')
    await chmod(join(data, 'jwt.key'), 0o640)
    const { status, advice } = await checkPermissions(data)
    assert.deepEqual([status, advice], ['down', `Run \`chmod 600 ${join(data, 'jwt.key')}\`.`])
    await chmod(data, 0o777)
    assert.match((await checkPermissions(data)).detail ?? '', /has mode 777$/)
  })
  it('the machine resolves Berth’s names, or the check lists those that fail', async () => {
    assert.equal((await checkNames(loadConfig({ PUBLIC_URL: 'http://127.0.0.1:3000' }))).status, 'ok')
    const config = loadConfig({
      BERTH_GATEWAY_DOMAIN: 'gateway.invalid',
      PUBLIC_URL: 'https://berth.invalid',
    })
    const { status, detail } = await checkNames(config)
    assert.deepEqual([status, detail], ['degraded', 'no address: berth.invalid, *.gateway.invalid'])
  })
})

describe('the readiness of a process', () => {
  const ok = { status: 'ok' } as const
  const down = { status: 'down', detail: 'away', cause: '10.0.0.1' } as const
  const read = (parts: Record<string, typeof ok | typeof down>, essential = 'database') => {
    const checks = Object.fromEntries(
      Object.entries(parts).map(([name, finding]) => [
        name,
        { find: () => finding, essential: name === essential },
      ]),
    )
    return new Readiness({ checks, log }).read()
  }

  it('a process is down only if an essential part is down', async () => {
    assert.equal((await read({ database: ok, ipfs: ok })).status, 'ok')
    assert.equal((await read({ database: ok, ipfs: down })).status, 'degraded')
    assert.equal((await read({ database: down, ipfs: ok })).status, 'down')
  })
  it('a process keeps the cause of a fault private', async () => {
    assert.deepEqual((await read({ ipfs: down })).parts, { ipfs: { status: 'down', detail: 'away' } })
  })
  it('a process does not wait for a part that hangs', async () => {
    const checks = { queue: { find: () => new Promise<never>(() => {}), essential: true } }
    const { status, parts } = await new Readiness({ checks, log }).read()
    assert.deepEqual([status, parts.queue], ['down', { status: 'down', detail: 'does not answer' }])
  })
  it('a process checks a hanging part once for any number of requests', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let asked = 0
    const find = () => {
      asked++
      return new Promise<never>(() => {})
    }
    const readiness = new Readiness({ checks: { disk: { find } }, log })
    for (let look = 0; look < 3; look++) {
      const report = readiness.read()
      t.mock.timers.tick(2000)
      assert.equal((await report).parts.disk?.status, 'down')
      t.mock.timers.tick(2000)
    }
    assert.equal(asked, 1)
  })
  it('a process logs a fault once, with its cause, after two consecutive checks', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const lines: { msg: string; cause?: string }[] = []
    const logged = createLogger('test', 'info', {
      write: (line: string) => void lines.push(JSON.parse(line)),
    })
    let finding: Finding = down
    const readiness = new Readiness({ checks: { ipfs: { find: () => finding } }, log: logged })
    const look = async () => {
      await readiness.read()
      t.mock.timers.tick(2000)
      return lines.map(({ msg, cause }) => [msg, cause])
    }
    const wrong = ['a part is not well', '10.0.0.1']
    assert.deepEqual(await look(), [])
    assert.deepEqual(await look(), [wrong])
    assert.deepEqual(await look(), [wrong])
    finding = ok
    assert.deepEqual(await look(), [wrong])
    const all = [wrong, ['a part is well again', undefined]]
    assert.deepEqual(await look(), all)
    finding = { ...down, isExpected: true }
    assert.deepEqual(await look(), all)
    assert.deepEqual(await look(), all)
  })
})
