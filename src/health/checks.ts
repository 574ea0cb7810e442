/** Health checks of components, shared by `/readyz` of every role and by `berth doctor`. */
import { isDatabaseFull } from '../db/database-errors.ts'
import { type Pool, transaction } from '../db/pool.ts'
import { type SchemaState, schemaState } from '../db/schema-state.ts'
import { hasOwner, readSpares } from '../db/statements/pool.ts'
import { SandboxError } from '../errors.ts'
import { formatBytes, judgeRoom } from '../lib/disk.ts'
import { type Finding, look, reasonOf } from '../lib/readiness.ts'
import { MODEL_PROVIDERS } from '../model-providers.ts'
import { DiskHelper } from '../sandboxes/docker/disk-helper.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import { NOT_WALLED, WALLS } from '../sandboxes/walls.ts'
import type { IpfsStatus, Storage } from '../storage/port.ts'

const DATABASE_ADVICE = 'Check that PostgreSQL runs, and DATABASE_URL.'
const NO_SPACE = 'no space left on its disk'
const FULL_ADVICE = 'Make room on the disk of PostgreSQL (its data folder, and pg_wal).'
/** Commits that wait longer wait for a replica that is away. */
const REPLICA_SECONDS = 5
const REPLICA_ADVICE =
  'Start the replicas that synchronous_standby_names of PostgreSQL names, or take them out of it and reload.'
/** SQLSTATE classes of a server that responds but rejects the connection. */
const REFUSALS: [RegExp, string][] = [
  [/^28/, 'refuses the user or the password'],
  [/^3D/, 'has no such database'],
  [/^53300/, 'has no connection left'],
  [/^57P03/, 'is starting or stopping'],
]

/** `degraded` if it responds but cannot write: it has no room, or its synchronous replicas are away. */
export async function checkDatabase(pool: Pool): Promise<Finding> {
  try {
    const { rowCount } = await pool.query(
      `SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query_start < now() - $1 * interval '1 s' LIMIT 1`,
      [REPLICA_SECONDS],
    )
    if (rowCount)
      return { status: 'degraded', detail: 'commits wait for a synchronous replica', advice: REPLICA_ADVICE }
    if (!pool.metFullDisk) return { status: 'ok' }
    await probeRoom(pool)
    pool.metFullDisk = false
    return { status: 'ok' }
  } catch (error) {
    const cause = reasonOf(error)
    if (isDatabaseFull(error)) return { status: 'degraded', detail: NO_SPACE, cause, advice: FULL_ADVICE }
    const { code = '' } = error as { code?: string }
    const [, detail = 'does not answer'] = REFUSALS.find(([codes]) => codes.test(code)) ?? []
    // A server whose log has no room shuts down.
    return pool.metFullDisk
      ? { status: 'down', detail: `${detail}; there was ${NO_SPACE}`, cause, advice: FULL_ADVICE }
      : { status: 'down', detail, cause, advice: DATABASE_ADVICE }
  }
}

/** Makes PostgreSQL write some megabytes to a temporary file, which changes nothing in the database. @throws 53100 */
const probeRoom = (pool: Pool): Promise<unknown> =>
  transaction(pool, async (client) => {
    await client.query("SET LOCAL work_mem = '64kB'")
    await client.query('SELECT count(*) FROM generate_series(1, 200000)')
  })

const NEWER_ADVICE = 'Start this process again on the version of Berth that brought the schema up to date.'

/**
 * A process that is running while the schema is being updated continues its work: migrations keep the schema usable.
 */
const SCHEMA: Record<SchemaState, Finding> = {
  current: { status: 'ok' },
  older: { status: 'down', detail: 'older than this process', advice: 'Run `npx berth migrate`.' },
  newer: {
    status: 'degraded',
    detail: 'newer than this process, which goes on',
    advice: NEWER_ADVICE,
  },
  unusable: { status: 'down', detail: 'needs a newer version of Berth', advice: NEWER_ADVICE },
}

export async function checkSchema(pool: Pool): Promise<Finding> {
  try {
    return SCHEMA[await schemaState(pool)]
  } catch (error) {
    return { status: 'down', detail: 'cannot be read', cause: reasonOf(error), advice: DATABASE_ADVICE }
  }
}

/** How many agents or secrets a finding names. */
const NAMED = 5

/**
 * Agents that run since before Berth kept the real keys of models outside of sandboxes: the model gateway counts
 * nothing of what they spend.
 */
export async function checkModelKeys(pool: Pool): Promise<Finding> {
  const { rows } = await pool.query<{ agentId: string }>(
    `SELECT agent_id AS "agentId" FROM agent
     WHERE status = 'running' AND deleted_at IS NULL AND model_key_hash IS NULL AND ${hasOwner('agent')} ORDER BY id`,
  )
  if (rows.length === 0) return { status: 'ok' }
  const names = rows.slice(0, NAMED).map(({ agentId }) => agentId)
  const others = rows.length - names.length
  return {
    status: 'degraded',
    detail: `in the sandboxes of ${names.join(', ')}${others > 0 ? ` and ${others} more` : ''}: no budget limits them`,
    advice:
      'Restart these agents: they have run since before the upgrade. Then replace the keys at their providers.',
  }
}

/** Names attached secrets that agents can read, because an owner may not know it. */
export async function checkSecrets(pool: Pool): Promise<Finding> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT DISTINCT s.name FROM agent_secret x JOIN secret s ON s.id = x.secret_id JOIN agent a ON a.id = x.agent_id
     WHERE a.deleted_at IS NULL AND s.type = 'secret' AND s.model_key_hash IS NULL AND s.name <> ALL ($1)
       AND (s.hosts = '{}' OR (a.model_key_hash IS NOT NULL AND a.proxy_key_hash IS NULL)
         OR (a.applied_secret_versions ->> s.id::text)::integer < s.brokered_version)
     ORDER BY s.name`,
    [MODEL_PROVIDERS.flatMap(({ secrets }) => secrets)],
  )
  if (rows.length === 0) return { status: 'ok', detail: 'agents can read none' }
  const names = rows.slice(0, NAMED).map(({ name }) => name)
  const others = rows.length - names.length
  return {
    status: 'ok',
    detail: `agents can read ${names.join(', ')}${others > 0 ? ` and ${others} more` : ''}: hosts keep a secret outside of them`,
  }
}

/** Spares that are ready, of BERTH_POOL. Without one, agents start slower, and nothing is broken. */
export const checkPool = (pool: Pool, size: number): Promise<Finding> =>
  look(async () => {
    const { rows } = await readSpares.run(pool)
    const ready = rows.filter(({ status }) => status === 'running').length
    return { status: 'ok', detail: `${ready} of ${size} ready` }
  })

/** @param redis undefined if the queue is in PostgreSQL, which has its own check. */
export async function checkQueue(redis: { ping(): Promise<unknown> } | undefined): Promise<Finding> {
  if (!redis) return { status: 'ok', detail: 'in PostgreSQL' }
  const advice = 'Check that Redis runs, and REDIS_URL.'
  const finding = await look(async () => {
    await redis.ping()
    return { status: 'ok', detail: 'Redis' }
  })
  if (finding.status === 'ok') return finding
  // Redis responds like this to everything except reads after it failed to write its append-only file or a snapshot.
  if (!/^MISCONF/.test(finding.cause ?? '')) return { ...finding, advice }
  const isFull = /no space left/i.test(finding.cause ?? '')
  const detail = isFull ? `Redis: ${NO_SPACE}` : 'Redis: cannot write to its disk'
  return { ...finding, detail, advice: 'Make room on the disk of Redis, or see its log.' }
}

/** @param node as last seen by the process that uses it. */
export function checkNode(node: IpfsStatus | undefined): Finding {
  if (!node) return { status: 'down', detail: 'nobody has reported it', advice: 'Check that a worker runs.' }
  if (node.shortage) return shortOf(node.driver, node.shortage)
  if (!node.error) return checkPeers(node)
  const advice = NODE_ADVICE[node.driver]
  return { status: 'down', detail: `${node.driver}: does not answer`, cause: node.error, advice }
}

const NODE_ADVICE = {
  kubo: 'Check that Kubo runs (`ipfs id`), and IPFS_API_URL or IPFS_PRIVATE_API_URL.',
  cluster:
    'Check that Kubo (`ipfs id`) and the peer next to it (`ipfs-cluster-ctl id`) run, IPFS_API_URL and IPFS_CLUSTER_API_URL, or those of the private network.',
  embedded:
    'See the log of the worker; with blocks in S3, check BERTH_BLOCKS_S3_URL and the server of the bucket.',
}

/** A node that responds: `degraded` while peers of its IPFS Cluster do not. */
function checkPeers({ driver, peers }: IpfsStatus): Finding {
  if (!peers) return { status: 'ok', detail: driver }
  const away = peers.filter(({ error }) => error !== null)
  const detail = `${driver}: ${peers.length - away.length} of ${peers.length} peers`
  if (away.length === 0) return { status: 'ok', detail }
  const cause = away.map(({ name, error }) => `${name}: ${error}`).join('; ')
  return { status: 'degraded', detail, cause, advice: 'Check the peers with `ipfs-cluster-ctl peers ls`.' }
}

/** The lack of room that this process met at a node; undefined if there was none. Never rejects. */
export async function checkRoom(storage: Storage): Promise<Finding | undefined> {
  const shortage = await storage.shortage({ signal: AbortSignal.timeout(ROOM_MS) }).catch(() => null)
  return shortage === null ? undefined : shortOf(storage.driver, shortage)
}

/** Less than the time limit for all components together. */
const ROOM_MS = 1500

const shortOf = (driver: Storage['driver'], cause: string): Finding => ({
  status: 'down',
  detail: `${driver}: ${NO_SPACE}`,
  cause,
  advice:
    'Make room on the disk of Kubo, then restart it: once it could not write a pin, it writes none until then.',
})

/** The name of the component that agents run in. */
export const runtimePart = (runtime: SandboxRuntime['driver']) =>
  ({ docker: 'docker', kubernetes: 'kubernetes', process: 'processes' })[runtime]

/** Checks that agents can be created and seen. */
export async function checkRuntime(runtime: SandboxRuntime, socket: string | undefined): Promise<Finding> {
  try {
    await runtime.ping()
    const unmet = await runtime.findUnmetNeed?.()
    if (unmet) return { status: 'down', detail: 'no agent can start', cause: unmet, advice: ADVICE_ON_NEEDS }
    const { wall } = runtime
    if (wall === undefined) return { status: 'ok' }
    const detail = WALLS[wall]
    return wall === 'none' ? { status: 'degraded', detail, advice: NOT_WALLED } : { status: 'ok', detail }
  } catch (error) {
    const cause = reasonOf(error)
    if (runtime.driver === 'process')
      return { status: 'down', detail: 'cannot be seen', cause, advice: 'Check BERTH_AGENTS_DIR.' }
    if (runtime.driver === 'kubernetes')
      return { status: 'down', detail: 'cannot be used', cause, advice: ADVICE_ON_CLUSTER }
    return { status: 'down', cause, ...explainDocker(error, socket) }
  }
}

const ADVICE_ON_NEEDS =
  'Fix that, or run agents in Docker (BERTH_RUNTIME=docker), which gives each of them all that the engine needs.'

const ADVICE_ON_CLUSTER =
  'Check that the API server answers, BERTH_KUBERNETES_CONFIG and BERTH_KUBERNETES_NAMESPACE, and that the account of `worker` has the rights of deploy/kubernetes/agents.yaml.'

/** Checks that agents get disks with a hard limit, and that there is room for another disk. */
export async function checkAgentDisks(socket: string, reserveBytes: number | undefined): Promise<Finding> {
  try {
    const { room } = await new DiskHelper(socket).read(undefined)
    const status = judgeRoom(room, reserveBytes)
    if (status === 'ok') return { status }
    const detail = `${formatBytes(room.free)} free of ${formatBytes(room.size)}`
    const advice = 'Delete agents, or set BERTH_DISKS_MB to more and start the disk helper again.'
    return { status, detail, advice }
  } catch (error) {
    const detail = 'the disk helper does not answer: check BERTH_DISKS_SOCKET'
    const advice = 'Check that it runs (`node src/main.ts disks`), and that this process may open its socket.'
    return { status: 'down', detail, cause: reasonOf(error), advice }
  }
}

function explainDocker(
  error: unknown,
  socket = 'unix:///var/run/docker.sock',
): { detail: string; advice: string } {
  const { code } = ((error as Error).cause ?? {}) as { code?: string }
  const path = socket.startsWith('unix://') ? socket.slice('unix://'.length) : undefined
  if (code === 'EACCES' || code === 'EPERM')
    return {
      detail: 'refuses this process: check DOCKER_GID',
      advice: `This process may not open ${path}. In compose set DOCKER_GID to the group that owns it: stat -c %g ${path}. Elsewhere add the user to that group.`,
    }
  if (code === 'ENOENT')
    return {
      detail: 'is not at DOCKER_HOST',
      advice: `Nothing is at ${path}: check that Docker runs, and DOCKER_HOST.`,
    }
  const refused = error instanceof SandboxError && error.code !== 'unreachable'
  return {
    detail: refused ? 'cannot be used' : 'does not answer: check DOCKER_HOST',
    advice: 'Check that Docker runs (`docker version`), and DOCKER_HOST.',
  }
}

/** The dispatcher polls five times a second; after an outage, a pass may take longer to succeed. */
const PASS_LIMIT_MS = 30_000

/** @param ageMs time since the last complete pass of this process's dispatcher. */
export function checkDispatcher(ageMs: number): Finding {
  if (ageMs <= PASS_LIMIT_MS) return { status: 'ok' }
  const detail = `last pass ${Math.round(ageMs / 1000)} s ago`
  return { status: 'down', detail, advice: 'See the log of `web`: it says what a pass failed on.' }
}
