/** Starts agentd as a process with its own session and environment. */
import { type ChildProcess, spawn } from 'node:child_process'
import { open, rename, rm } from 'node:fs/promises'
import { constants } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentdConfig } from '../../../agentd/protocol.ts'
import { SandboxError } from '../../errors.ts'
import { logSize, logTail } from '../../lib/process/log-file.ts'
import { isAlive, type ProcessIdentity, processIdentity } from '../../lib/process/process-identity.ts'
import type { SandboxSpec } from '../port.ts'
import { asAgent } from './command.ts'
import type { Place } from './place-record.ts'
import { type AgentPaths, readReady } from './state.ts'
import { MARKER } from './table.ts'
import { SYSTEM_PATH } from './wall.ts'

/** Measured: 0.2 s; on a very busy machine it may take a hundred times that. */
const READY_LIMIT_MS = 30_000
const LOG_LIMIT = 1024 * 1024
const BLOCK_BYTES = 512

/**
 * No core dumps, no file larger than the agent's disk, and killed before the database when memory runs out. Limits that
 * the system does not support are left out.
 */
const WITH_LIMITS = `ulimit -c 0; ulimit -f "$1" 2>/dev/null
{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
shift; exec "$@"`

export interface Spawned {
  leader: ProcessIdentity | null
  /** Exit code of the leader, as shells report it: 128 + the signal's number if a signal ended it. */
  exited: Promise<number>
}

/**
 * Starts agentd; it keeps running after this process ends.
 * @throws SandboxError `internal` if it could not be started.
 */
export async function spawnAgentd(options: {
  place: Place
  paths: AgentPaths
  spec: SandboxSpec
  engineDir: string
  run: { id: string; gatewayPort: number }
}): Promise<Spawned> {
  const { place, paths, spec, run } = options
  const config: AgentdConfig = {
    ...spec.agentd,
    host: '127.0.0.1',
    port: 0,
    home: paths.home,
    engineDir: options.engineDir,
    gatewayPort: run.gatewayPort,
    readyFile: paths.ready,
  }
  await rm(paths.ready, { force: true })
  if ((await logSize(paths.log)) > LOG_LIMIT) await rename(paths.log, `${paths.log}.1`)
  const log = await open(paths.log, 'a', 0o600)
  try {
    const blocks = Math.ceil(spec.agentd.diskBytes / BLOCK_BYTES)
    const agentd = [place.node, '--max-semi-space-size=1', place.agentd]
    const { command, user } = asAgent(place, paths, [options.engineDir], agentd)
    const child = spawn('/bin/sh', ['-c', WITH_LIMITS, 'sh', String(blocks), ...command], {
      ...user,
      cwd: paths.home,
      env: {
        PATH: `${dirname(place.node)}:${SYSTEM_PATH}`,
        HOME: paths.home,
        TMPDIR: paths.temporary,
        LANG: 'C.UTF-8',
        ...(place.compileCache && { NODE_COMPILE_CACHE: place.compileCache }),
        ...spec.env,
        AGENTD_CONFIG: JSON.stringify(config),
        [MARKER]: run.id,
      },
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    })
    const exited = exitOf(child)
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (cause) =>
        reject(new SandboxError('internal', `agentd could not be started: ${cause.message}`, { cause })),
      )
    })
    child.unref()
    return { leader: child.pid === undefined ? null : await processIdentity(child.pid), exited }
  } finally {
    await log.close()
  }
}

function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
  })
}

/**
 * Waits until agentd listens.
 * @returns its port.
 * @throws SandboxError `internal` with the last lines of its log if it ends first, or takes too long.
 */
export async function waitUntilReady(
  place: Place,
  paths: AgentPaths,
  leader: ProcessIdentity,
  signal: AbortSignal | undefined,
): Promise<number> {
  const deadline = performance.now() + READY_LIMIT_MS
  for (;;) {
    signal?.throwIfAborted()
    // Inside namespaces agentd has another pid, and is a child of the leader.
    const port = await readReady(paths, place.view ? undefined : leader)
    if (port !== null) return port
    const alive = await isAlive(leader)
    if (alive && performance.now() < deadline) await sleep(20)
    else {
      const what = alive ? `does not listen after ${READY_LIMIT_MS / 1000} s` : 'ended during its start'
      throw new SandboxError('internal', `agentd ${what}: ${await logTail(paths.log, 0)}`)
    }
  }
}
