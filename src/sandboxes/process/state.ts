/** The state of a folder's sandboxes, in files that outlive the worker: `<agentsDir>/<agentId>/…`. */
import { existsSync } from 'node:fs'
import { chown, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readPlainFile } from '../../../agentd/plain-file.ts'
import { SandboxError } from '../../errors.ts'
import { hasCode, readIfExists, replaceFile } from '../../lib/files.ts'
import type { ProcessIdentity } from '../../lib/process/process-identity.ts'
import { AlreadyRunning, acquireLock, type ProcessLock } from '../../lib/process/process-lock.ts'
import { type RunAs, run } from '../../lib/process/system-user.ts'
import type { SandboxSpec } from '../port.ts'

/** Content of `state.json`: the sandbox exists if the file does. */
export interface SandboxState {
  spec: SandboxSpec
  hash: string
  /** The sandbox's last start; null before the first. */
  run: RunState | null
}

export interface RunState {
  /** Identifies the run in the environment of its processes; written before they start. */
  id: string
  /** agentd's process; null if the worker died during the start. */
  leader: ProcessIdentity | null
  /** ISO 8601. */
  startedAt: string
  gatewayPort: number
  /** agentd's port; null until it listens. */
  port: number | null
  exitCode: number | null
}

/** The paths of one agent. */
export interface AgentPaths {
  folder: string
  mark: string
  state: string
  home: string
  temporary: string
  /** Written by agentd, and so untrusted, like everything in `home` and `temporary`. */
  ready: string
  log: string
}

const LOCK_LIMIT_MS = 60_000
const LOCK_POLL_MS = 20
const READY_BYTES = 1024
const REMOVE_LIMIT_MS = 300_000

const AGENT_ID = /^[a-z0-9][a-z0-9-]*$/

export function pathsOf(agentsDir: string, agentId: string): AgentPaths {
  if (!AGENT_ID.test(agentId)) throw new SandboxError('internal', `${agentId} is not an agent id`)
  const folder = join(agentsDir, agentId)
  return {
    folder,
    mark: join(folder, '.berth-agent'),
    state: join(folder, 'state.json'),
    home: join(folder, 'home'),
    temporary: join(folder, 'tmp'),
    ready: join(folder, 'tmp', 'agentd.json'),
    log: join(folder, 'agentd.log'),
  }
}

/** The state of a sandbox; null if it does not exist. */
export async function readState(paths: AgentPaths): Promise<SandboxState | null> {
  const text = await readIfExists(paths.state)
  return text === null ? null : (JSON.parse(text) as SandboxState)
}

export const writeState = (paths: AgentPaths, state: SandboxState): Promise<void> =>
  replaceFile(paths.state, `${JSON.stringify(state)}\n`, 0o600)

/** The ids of all agents that have a folder. Ignores everything else, because the operator chose the location. */
export async function agentIds(agentsDir: string): Promise<string[]> {
  const names = (await readdir(agentsDir)).filter((name) => AGENT_ID.test(name))
  return names.filter((name) => isMarked(pathsOf(agentsDir, name)))
}

/** True for an agent's folder, created by {@link markFolder}. */
export const isMarked = (paths: AgentPaths): boolean => existsSync(paths.mark)

/** Creates the folder of an agent, and marks it as such. */
export async function markFolder(paths: AgentPaths): Promise<void> {
  await mkdir(paths.folder, { recursive: true, mode: 0o711 })
  await writeFile(paths.mark, '')
}

/**
 * Creates a folder that belongs only to the agents' user. Its parent belongs to Berth, so nobody can replace the folder
 * in between.
 */
export async function makeOwnFolder(path: string, user: RunAs): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
  // Repeated for an existing folder: an earlier process may have died before this line.
  if (user.uid !== undefined) await chown(path, user.uid, user.gid)
}

/**
 * Removes one of the agent's folders, as the agents' user, so that links in it cannot lead root elsewhere.
 * @throws SandboxError if something is left.
 */
export async function removeOwnFolder(path: string, user: RunAs): Promise<void> {
  const script = 'test ! -d "$1" || { chmod -R u+rwX "$1"; find "$1" -mindepth 1 -delete; }'
  const { ok, output } = await run('/bin/sh', ['-c', script, 'sh', path], user, REMOVE_LIMIT_MS)
  if (!ok) throw new SandboxError('internal', `${path} could not be removed: ${output.slice(-500)}`)
  await rm(path, { recursive: true, force: true })
}

/** The port that agentd wrote when it began to listen; null if another process than `leader` wrote it. */
export async function readReady(
  paths: AgentPaths,
  leader: ProcessIdentity | undefined,
): Promise<number | null> {
  try {
    const { pid, port } = JSON.parse((await readPlainFile(paths.ready, READY_BYTES)) ?? 'null')
    const valid = Number.isInteger(port) && port >= 1024 && port <= 65_535
    return valid && (!leader || pid === leader.pid) ? port : null
  } catch {
    // It does not exist yet, or the agent has put something else there.
    return null
  }
}

/**
 * Holds a name exclusively, among all workers with this folder, while `work` runs.
 * @throws SandboxError if another worker holds it for too long.
 */
export async function holding<T>(
  agentsDir: string,
  name: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const folder = join(agentsDir, '.locks')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const lock = await waitForLock(join(folder, name), signal)
  try {
    return await work()
  } finally {
    await lock.release()
  }
}

async function waitForLock(path: string, signal: AbortSignal | undefined): Promise<ProcessLock> {
  const deadline = performance.now() + LOCK_LIMIT_MS
  for (;;) {
    signal?.throwIfAborted()
    try {
      return await acquireLock(path)
    } catch (error) {
      if (!(error instanceof AlreadyRunning)) throw error
      if (performance.now() > deadline)
        throw new SandboxError('internal', `process ${error.holder.pid} holds ${path}`)
      await sleep(LOCK_POLL_MS)
    }
  }
}
