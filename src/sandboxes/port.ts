/**
 * The runtime of agents: Docker containers, pods of a cluster, or processes of this machine. A sandbox contains one
 * agent's agentd and everything that it starts. Its volume is the agent's home, which outlives the sandbox. Every call
 * may be repeated.
 */
import { createHash } from 'node:crypto'
import type { AgentdConfig } from '../../agentd/protocol.ts'
import { SandboxError } from '../errors.ts'
import { hasCode } from '../lib/files.ts'
import type { Tidying } from '../openclaw/tidy.ts'
import type { Wall } from './walls.ts'

export const SANDBOX_DRIVERS = ['docker', 'process', 'kubernetes'] as const
export type SandboxDriver = (typeof SANDBOX_DRIVERS)[number]

/** The specification of a sandbox. */
export interface SandboxSpec {
  agentId: string
  engine: string
  engineVersion: string
  /** The agent's own host name; never changes, because the engine's locks depend on it. */
  hostname: string
  /** agentd's environment, without secrets. */
  env: Record<string, string>
  /** agentd's settings; the driver adds the listening address and the folders. */
  agentd: Pick<AgentdConfig, 'agentId' | 'tokenHash' | 'diskBytes'>
  limits: { memoryBytes: number; cpus: number; pids: number }
}

export interface Sandbox {
  agentId: string
  state: 'created' | 'running' | 'exited'
  engineVersion: string
  /** Address of agentd, `address:port`, while the sandbox runs. */
  address: string | null
  /** Exit code while the state is `exited`. */
  exitCode: number | null
  oomKilled: boolean
  /** Why it ended, if the cluster ended it. */
  cause?: string
  /** Why an existing sandbox cannot be reached: it was paused, or lost its network. `create` recreates it. */
  fault?: string
  /** ISO 8601; null before the first start. */
  startedAt: string | null
}

export interface SandboxStats {
  memoryBytes: number
  /** Processor time used so far, in seconds. */
  cpuSeconds: number
  pids: number
}

/** A sandbox started, ended or was removed. */
export interface SandboxEvent {
  agentId: string
  type: 'started' | 'exited' | 'removed'
}

/** An available version of the engine. */
export interface EngineVersion {
  version: string
  /** Why agents cannot run it here: it needs another Node. Null if agents can, as far as Berth knows. */
  obstacle: string | null
  /** Name of its image, or its folder. */
  place: string
  /** Bytes on disk, if they were asked for or are known anyway; images share part of them. */
  bytes?: number
}

export interface CallOptions {
  signal?: AbortSignal | undefined
}

/** Every method may throw a SandboxError. */
export interface SandboxRuntime {
  readonly driver: SandboxDriver
  /** The isolation of agents that are processes. */
  readonly wall?: Wall
  /**
   * Creates the agent's volume (home) if it does not exist. Sets a volume with a hard limit to `diskBytes`, or removes
   * the limit if `diskBytes` is not given.
   */
  ensureVolume(agentId: string, options?: CallOptions & { diskBytes?: number }): Promise<void>
  /**
   * Creates the sandbox without starting it; the agent's fixed name acts as a lock. Keeps an existing sandbox with the
   * same spec; replaces one with another spec (version, limits, environment), or with a fault. Never touches the
   * volume.
   */
  create(spec: SandboxSpec, options?: CallOptions): Promise<void>
  /** Starts it and resolves once agentd's address is known; does nothing if it runs. */
  start(agentId: string, options?: CallOptions): Promise<Sandbox>
  /** Ends it: SIGTERM, then SIGKILL after `graceMs`. Does nothing if it does not run or does not exist. */
  stop(agentId: string, options?: CallOptions & { graceMs?: number }): Promise<void>
  /** Removes the sandbox, running or not, and its network; with `volume` also its home. */
  remove(agentId: string, options: CallOptions & { volume: boolean }): Promise<void>
  /** The agent's home as a tar of the current files, even while the agent runs. */
  readHome(agentId: string, options?: CallOptions): AsyncIterable<Uint8Array>
  /** Replaces the agent's home with the contents of a tar. Only allowed while no sandbox exists. */
  writeHome(agentId: string, content: AsyncIterable<Uint8Array>, options?: CallOptions): Promise<void>
  inspect(agentId: string, options?: CallOptions): Promise<Sandbox | undefined>
  /** Every sandbox of this Berth, and the agents of volumes without a sandbox. */
  list(options?: CallOptions): Promise<{ sandboxes: Sandbox[]; volumes: string[] }>
  stats(agentId: string, options?: CallOptions): Promise<SandboxStats>
  /** Yields until `signal` fires; reconnects by itself. Events may be lost, so callers also have to list. */
  events(options: { signal: AbortSignal }): AsyncIterable<SandboxEvent>
  /** The available versions of the engine. */
  engines(options?: CallOptions & { sizes?: boolean }): Promise<EngineVersion[]>
  /**
   * Makes a version available: builds its image, or installs it, unless that is done. Takes long; `onLine` receives its
   * output.
   * @throws SandboxError `no_image` if the version does not exist, or no agent can run it.
   */
  prepareEngine(version: string, options?: CallOptions & { onLine?: (line: string) => void }): Promise<void>
  removeEngine(version: string, options?: CallOptions): Promise<void>
  /**
   * Marks the versions in `keep` as needed, and removes engines that neither this Berth nor another on the same machine
   * has needed for `graceMs` milliseconds. @returns what was removed.
   */
  tidyEngines(options: CallOptions & Tidying): Promise<string[]>
  /**
   * Why agents must not run here; null if they may. Callers check it once before they start agents. A driver without
   * this method has no such obstacles. @throws SandboxError if that cannot be determined now.
   */
  findObstacle?(options?: CallOptions): Promise<string | null>
  /** Which needs of the engine are not met here, and what to do about it; null if all are met. */
  findUnmetNeed?(): Promise<string | null>
  /** @throws SandboxError `unreachable` if it cannot be used now. */
  ping(options?: CallOptions): Promise<void>
  close(): Promise<void>
}

/** Converts an error of the system into a driver error. An abort by the caller stays unchanged. */
export function toSandboxError(error: unknown, signal?: AbortSignal): unknown {
  if (error instanceof SandboxError || signal?.aborted || !(error instanceof Error)) return error
  const { message } = error
  if (hasCode(error, 'ENOSPC', 'EDQUOT'))
    return new SandboxError('disk_full', `no space is left: ${message}`, { cause: error })
  return new SandboxError('internal', message, { cause: error })
}

/** Hashes the inputs of a sandbox: the same content has the same hash, whatever the order of its keys. */
export function hashOf(content: unknown): string {
  const text = JSON.stringify(content, (_, part) =>
    part && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
