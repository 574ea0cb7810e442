/** One check for each part, the same for `/readyz` of every role and for `berth doctor`. */
import type { Pool } from '../db/pool.ts'
import { type SchemaState, schemaState } from '../db/schema-state.ts'
import { type Finding, look, reasonOf } from '../lib/readiness.ts'
import { SandboxError, type SandboxRuntime } from '../sandboxes/port.ts'
import type { IpfsStatus } from '../storage/port.ts'

const DATABASE_ADVICE = 'Check that PostgreSQL runs, and DATABASE_URL.'
/** SQLSTATE classes of a server that is there and does not let us in. */
const REFUSALS: [RegExp, string][] = [
  [/^28/, 'refuses the user or the password'],
  [/^3D/, 'has no such database'],
  [/^53300/, 'has no connection left'],
  [/^57P03/, 'is starting or stopping'],
]

export async function checkDatabase(pool: Pool): Promise<Finding> {
  try {
    await pool.query('SELECT 1')
    return { status: 'ok' }
  } catch (error) {
    const { code = '' } = error as { code?: string }
    const [, detail = 'does not answer'] = REFUSALS.find(([codes]) => codes.test(code)) ?? []
    return { status: 'down', detail, cause: reasonOf(error), advice: DATABASE_ADVICE }
  }
}

const NEWER_ADVICE = 'Start this process again on the version of Berth that brought the schema up to date.'

/** A process that runs while others bring the schema up to date goes on with its work: migrations keep it usable. */
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

/** @param ping of Redis; undefined where the queue is in PostgreSQL, which has a check of its own. */
export async function checkQueue(ping: (() => Promise<unknown>) | undefined): Promise<Finding> {
  if (!ping) return { status: 'ok', detail: 'in PostgreSQL' }
  const advice = 'Check that Redis runs, and REDIS_URL.'
  const finding = await look(async () => {
    await ping()
    return { status: 'ok', detail: 'Redis' }
  })
  return finding.status === 'ok' ? finding : { ...finding, advice }
}

/** @param node as the process that uses it saw it last. */
export function checkNode(node: IpfsStatus | undefined): Finding {
  if (!node) return { status: 'down', detail: 'nobody has reported it' }
  if (!node.error) return { status: 'ok', detail: node.driver }
  const advice =
    node.driver === 'kubo'
      ? 'Check that Kubo runs (`ipfs id`), and IPFS_API_URL or IPFS_PRIVATE_API_URL.'
      : 'See the log of the worker.'
  return { status: 'down', detail: `${node.driver}: does not answer`, cause: node.error, advice }
}

/** The name of the part that agents run in. */
export const runtimePart = (runtime: SandboxRuntime['driver']) =>
  runtime === 'docker' ? 'docker' : 'processes'

/** Whether agents can be made and seen. */
export async function checkRuntime(runtime: SandboxRuntime, socket: string | undefined): Promise<Finding> {
  try {
    await runtime.ping()
    return { status: 'ok' }
  } catch (error) {
    const cause = reasonOf(error)
    if (runtime.driver === 'process')
      return { status: 'down', detail: 'cannot be seen', cause, advice: 'Check BERTH_AGENTS_DIR.' }
    return { status: 'down', cause, ...explainDocker(error, socket) }
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

/** The dispatcher polls five times a second; after an outage it takes a while to get through. */
const PASS_LIMIT_MS = 30_000

/** @param ageMs since the last whole pass of this process's dispatcher. */
export function checkDispatcher(ageMs: number): Finding {
  if (ageMs <= PASS_LIMIT_MS) return { status: 'ok' }
  const detail = `last pass ${Math.round(ageMs / 1000)} s ago`
  return { status: 'down', detail, advice: 'See the log of `web`: it says what a pass failed on.' }
}
