/**
 * The context that files of the contract suite share: a Berth, their own workspaces in it, and CIDs. Each file is a
 * process, so modules that only some of them use are imported on demand: loading all of them takes a second of CPU
 * time.
 */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { sha256 } from 'multiformats/hashes/sha2'
import { KeyService } from '../../src/accounts/keys.ts'
import { findMember, setRole } from '../../src/accounts/members.ts'
import { createLoginLink } from '../../src/accounts/sessions.ts'
import { createPool, queryOne, transaction } from '../../src/db/pool.ts'
import { createPrisma } from '../../src/db/prisma.ts'
import type { Role } from '../../src/http/principal.ts'
import { loadSigningKey } from '../../src/lib/signing-keys.ts'
import { createLogger } from '../../src/log.ts'
import { postgresUrl } from '../../src/standalone/postgres.ts'
import type { Network } from '../../src/storage/port.ts'
import { Client } from '../support/client.ts'
import { enginesDir } from '../support/engines.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { freePort, until } from '../support/processes.ts'
import type { Provider } from '../support/provider.ts'
import { cli, type Stack, stackKind, startStack } from '../support/stack.ts'

/** The environment variable that passes the shared Berth from `setup.ts` to the files of a run. */
export const SHARED = 'BERTH_TEST_SHARED'

/** In the environment of a shared Berth: a git server that it may fetch from, and the folder of its repositories. */
export const REPOSITORIES = { url: 'BERTH_TEST_GIT_URL', dir: 'BERTH_TEST_GIT_DIR' } as const

/** Whether the embedded nodes, and unfinished uploads, are in S3: `BERTH_TEST_BLOCKS=s3`. */
const inBucket = process.env.BERTH_TEST_BLOCKS === 's3'

const SETTINGS = {
  // Short enough for tests that wait for the end of an attempt, long enough for all others.
  BERTH_PINS: 'stallSeconds=10,retrySeconds=1',
  BERTH_CONCURRENCY: 'pins=64',
  BERTH_INTERVALS: 'agents=1,analytics=0.2',
}

/**
 * Starts a Berth whose agents use a model on loopback, and which may fetch from a git server there. Stopping it removes
 * its agents, which outlive a Berth.
 * @param env additional settings.
 * @param database where it stores its data; see {@link startStack}.
 */
export async function startShared(
  env: NodeJS.ProcessEnv = {},
  database: 'own' | 'of the run' = 'own',
): Promise<Stack> {
  const [{ startModel }, { startGitBackend }, { openRuntimeOf }, standIn] = await Promise.all([
    import('../support/model.ts'),
    import('../support/git-backend.ts'),
    import('../support/runtime.ts'),
    import('../integration/agents/stand-in.ts'),
  ])
  if (stackKind === 'kubernetes') return startSharedInCluster(env)
  // Next to the data, which is deleted before the agents are.
  const dir = await mkdtemp(join(tmpdir(), 'berth-shared-'))
  await chmod(dir, 0o711)
  const gitDir = join(dir, 'repositories')
  await mkdir(gitDir)
  const runtime =
    stackKind === 'real'
      ? {
          BERTH_RUNTIME: 'docker',
          BERTH_ENGINES_DIR: enginesDir,
          BERTH_BASE_IMAGE: await standIn.tagStandInBase(),
        }
      : { BERTH_RUNTIME: 'process', BERTH_ENGINES_DIR: await standIn.installAll(join(dir, 'engines')) }
  const model = await startModel()
  const git = await startGitBackend(gitDir)
  const bucket = inBucket ? await (await import('../support/s3.ts')).startBlocks() : undefined
  const settings = {
    ...SETTINGS,
    ...runtime,
    ...model.env,
    BERTH_AGENTS_DIR: join(dir, 'agents'),
    // One file starts a server at each: `agents/domains.test.ts`, `webhooks-sent.test.ts`, `mcp-oauth.test.ts`.
    BERTH_DNS_SERVER: await freeAddress(),
    BERTH_WEBHOOK_ALLOW: `${await freeAddress()},${await freeAddress()}`,
    BERTH_MCP_CLIENT_ALLOW: await freeAddress(),
    BERTH_GIT_ALLOW: new URL(git.url).host,
    [REPOSITORIES.url]: git.url,
    [REPOSITORIES.dir]: gitDir,
    ...bucket?.env,
    ...env,
  }
  const undo = async () => {
    await Promise.all([model.stop(), git.close(), bucket?.stop()])
    await rm(dir, { recursive: true, force: true })
  }
  const stack = await startStack({ env: settings, database }).catch(async (error) => {
    await undo()
    throw error
  })
  return {
    ...stack,
    async stop() {
      const runtime = await openRuntimeOf(stack.env)
      await stack.stop()
      const { sandboxes, volumes } = await runtime.list()
      for (const agentId of [...sandboxes.map((one) => one.agentId), ...volumes])
        await runtime.remove(agentId, { volume: true })
      await runtime.close()
      await undo()
    },
  }
}

/** Its agents are removed with their namespace. */
async function startSharedInCluster(env: NodeJS.ProcessEnv): Promise<Stack> {
  const [{ startModel }, { startInCluster }] = await Promise.all([
    import('../support/model.ts'),
    import('../support/cluster-berth.ts'),
  ])
  const model = await startModel()
  const stack = await startInCluster({ ...SETTINGS, ...model.env, ...(env as Record<string, string>) })
  return {
    ...stack,
    async stop() {
      await stack.stop()
      await model.stop()
    },
  }
}

/** A free address on loopback. */
const freeAddress = async () => `127.0.0.1:${await freePort()}`

type Berth = Pick<Stack, 'url' | 'env' | 'berth'>

export interface Workspace {
  id: string
  name: string
  /** A client with a key that may do everything in the workspace. */
  api: Client
  /** A client with a new key with these scopes. */
  keyed(...scopes: string[]): Promise<Client>
  /** A client with a key as `berth keys create` makes it, without the cost of a process. */
  created(key?: CreatedKey): Promise<Client>
  /** Gives a user a role in the workspace, as `berth users add` does: a new user unless one is named. */
  member(role: Role, user?: string): Promise<{ id: string; name: string }>
  /** The token of a login link, as `berth login-link` prints it: for the owner unless a member is named. */
  loginToken(user?: string): Promise<string>
}

interface CreatedKey {
  /** The member for whom the key acts: the owner by default; null for no user. */
  user?: string | null
  scopes?: string[]
  expiresAt?: Date
}

export interface Context extends Berth {
  /** A client without a key. */
  anonymous: Client
  /** A client of the workspace that all files of a run share, for resources too costly to create in each file. */
  shared: Client
  /** A new workspace, which isolates the files of a run from each other. */
  workspace(plan?: string): Promise<Workspace>
  /** The workspace of {@link shared}. */
  sharedWorkspace(): Promise<Workspace>
  /** A provider that stops after the tests of the file. */
  provider(): Promise<Provider>
  /** Whether Berth's IPFS node of this network has the CID pinned. */
  isPinned(cid: CID, network?: Network): Promise<boolean>
  /** Runs SQL on Berth's database, for what only an operator with SQL access can do. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /**
   * Keeps the rows of a statement locked while `work` runs.
   * @param work gets a function that waits until this many transactions wait for the rows.
   */
  locked<T>(
    text: string,
    values: unknown[],
    work: (waiting: (count: number) => Promise<unknown>) => Promise<T>,
  ): Promise<T>
}

/** Counts the transactions that wait, directly or indirectly, for the one with the pid `$1`. */
const COUNT_WAITING = `WITH RECURSIVE waiting AS (
    SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))
    UNION SELECT next.pid FROM pg_stat_activity next JOIN waiting ON waiting.pid = ANY (pg_blocking_pids(next.pid)))
  SELECT count(*)::int AS count FROM waiting`

/** The context on the shared Berth of the run, for all test files that this process runs. */
let opened: Promise<Context> | undefined

/** The Berth of this run. Call it once in a file, at the top level. */
export async function openContext(berth?: Stack): Promise<Context> {
  const shared = process.env[SHARED]
  if (!berth && shared) {
    const { url, env, key } = JSON.parse(shared)
    opened ??= createContext({ url, env, berth: cli(env) }, key)
    return opened
  }
  const own = berth ?? (await startShared())
  after(() => own.stop())
  return createContext(own, await createSharedKey(own))
}

/** A key of the first workspace that may create other keys. */
export const createSharedKey = (berth: Stack): Promise<string> =>
  berth.createKey('--scopes', 'admin,instance:write')

async function createContext({ url, env, berth }: Berth, key: string): Promise<Context> {
  const anonymous = new Client(url, await DocumentCheck.load(url))
  // Starting `berth` for each key would take half of the suite's time.
  const dataDir = env.BERTH_DATA_DIR ?? ''
  const pool = createPool(
    env.DATABASE_URL ?? (await postgresUrl(dataDir)) ?? '',
    2,
    createLogger('test', 'silent'),
  )
  after(() => pool.end())
  const prisma = createPrisma(pool)
  const keys = new KeyService(prisma, loadSigningKey(env.JWT_KEY, dataDir))
  const shared = anonymous.as(key)

  function workspaceOf(id: string, name: string, api: Client): Workspace {
    const idOf = (user = 'owner') => findMember(prisma, id, user)
    const created = async ({ user, scopes = ['admin'], expiresAt }: CreatedKey = {}) => {
      const userId = user === null ? null : await idOf(user)
      const key = { workspaceId: id, userId, name: 'test', scopes, ...(expiresAt && { expiresAt }) }
      return anonymous.as((await keys.create(key)).token)
    }
    const member = async (role: Role, user = `${role}-${randomUUID()}`) => ({
      id: (await setRole(prisma, { workspaceId: id, user, role })).id,
      name: user,
    })
    const loginToken = async (user?: string) => {
      const link = await createLoginLink(pool, url, { workspaceId: id, userId: await idOf(user) })
      return link.split('#token=')[1] ?? ''
    }
    const keyed = async (...resources: string[]) => {
      const { body } = await api.post('/v3/pinata/keys', { keyName: 'test', permissions: { resources } })
      return anonymous.as(body.JWT)
    }
    return { id, name, api, keyed, created, member, loginToken }
  }
  return {
    url,
    env,
    berth,
    anonymous,
    shared,
    async workspace(plan = 'unlimited') {
      const name = `test-${randomUUID()}`
      const { status, body } = await shared.post('/v0/admin/workspaces', { name, plan, owner: 'owner' })
      assert.equal(status, 201, JSON.stringify(body))
      return workspaceOf(body.data.id, name, anonymous.as(body.data.token))
    },
    async sharedWorkspace() {
      const { workspace } = (await shared.get('/v0/me')).body.data
      return workspaceOf(workspace.id, workspace.name, shared)
    },
    async provider() {
      const { startProvider } = await import('../support/provider.ts')
      const provider = await startProvider()
      after(() => provider.stop())
      return provider
    },
    async isPinned(cid, network = 'public') {
      const apiUrl = network === 'public' ? env.IPFS_API_URL : env.IPFS_PRIVATE_API_URL
      if (!apiUrl) {
        // Only the pin folder: loading the whole driver takes half a second of CPU time.
        const { PinFolder } = await import('../../src/storage/embedded/pins.ts')
        return new PinFolder(join(dataDir, 'ipfs', network), { markExpiryMs: 0 }).has(cid.toV1())
      }
      const storage = (await import('../../src/storage/kubo.ts')).createKuboStorage({ apiUrl, network })
      try {
        return await storage.isPinned(cid.toV1(), { signal: AbortSignal.timeout(60_000) })
      } finally {
        await storage.stop()
      }
    },
    sql: async (text, values) => (await pool.query<Record<string, unknown>>(text, values)).rows,
    locked: (text, values, work) =>
      transaction(pool, async (tx) => {
        await tx.query(text, values)
        const { pid } = await queryOne<{ pid: number }>(tx, 'SELECT pg_backend_pid() AS pid')
        return work((count) =>
          until(`${count} wait`, async () => {
            const waiting = await queryOne<{ count: number }>(pool, COUNT_WAITING, [pid])
            return waiting.count >= count
          }),
        )
      }),
  }
}

/** The CID of a block that no node has. */
export async function missingCid(codec = raw.code): Promise<CID> {
  return CID.createV1(codec, await sha256.digest(randomBytes(32)))
}

/** A CID that contains its content: it is pinned without any other node. */
export const inlineCid = (text: string): CID =>
  CID.createV1(raw.code, identity.digest(new TextEncoder().encode(text)))
