/**
 * The runtime of agents: Docker containers, pods of a cluster, or processes of this machine. A sandbox holds one agent's agentd and all
 * that it starts; its volume is the agent's home, which outlives it. Every call may be made twice.
 */
import { createHash } from 'node:crypto'
import type { AgentdConfig } from '../../agentd/protocol.ts'
import { hasCode } from '../lib/files.ts'
import { EngineError } from '../openclaw/engine-error.ts'
import type { Tidying } from '../openclaw/tidy.ts'
import type { Wall } from './walls.ts'

export const SANDBOX_DRIVERS = ['docker', 'process', 'kubernetes'] as const
export type SandboxDriver = (typeof SANDBOX_DRIVERS)[number]

/** The specification of a sandbox. */
export interface SandboxSpec {
  agentId: string
  engine: string
  engineVersion: string
  /** The name by which the agent sees itself; never changes (the engine's locks go by it). */
  hostname: string
  /** Environment of agentd that is not secret. */
  env: Record<string, string>
  /** agentd's settings; the driver adds where it listens and where the folders are. */
  agentd: Pick<AgentdConfig, 'agentId' | 'tokenHash' | 'diskBytes'>
  limits: { memoryBytes: number; cpus: number; pids: number }
}

export interface Sandbox {
  agentId: string
  state: 'created' | 'running' | 'exited'
  engineVersion: string
  /** Address of agentd, `address:port`, while the sandbox runs. */
  address: string | null
  /** Why it ended, while it is `exited`. */
  exitCode: number | null
  oomKilled: boolean
  /** Why it ended, in a cluster that ended it. */
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

/** A sandbox started or ended, or was removed; `agentId` says whose. */
export interface SandboxEvent {
  agentId: string
  type: 'started' | 'exited' | 'removed'
}

/** A version of the engine that is at hand. */
export interface EngineVersion {
  version: string
  /** Why no agent can run it here: it needs another Node. Null if agents can, as far as Berth knows. */
  obstacle: string | null
}

export interface EngineAtHand extends EngineVersion {
  /** Name of its image, or its folder. */
  place: string
  /** On the disk; images share part of it. */
  bytes: number
}

export type SandboxErrorCode =
  /** What runs sandboxes (Docker, the API server) does not answer. */
  | 'unreachable'
  /** No sandbox has this id. */
  | 'not_found'
  /** The engine version is neither there nor can it be made. */
  | 'no_image'
  /** The cluster has no room for it just now: its quota is used up, or no node takes it. */
  | 'no_room'
  /** No space is left. */
  | 'disk_full'
  /** A new agent could read Berth's keys, which the operator has not accepted. */
  | 'not_walled'
  /** The engine does not get what it needs of this machine. */
  | 'unmet_need'
  /** It ended as it started: the kernel killed it for memory. */
  | 'out_of_memory'
  | 'internal'

export class SandboxError extends Error {
  override name = 'SandboxError'
  readonly code: SandboxErrorCode

  constructor(code: SandboxErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export interface CallOptions {
  signal?: AbortSignal | undefined
}

/** @throws SandboxError from every method. */
export interface SandboxRuntime {
  readonly driver: SandboxDriver
  /** The wall around agents that are processes. */
  readonly wall?: Wall
  /**
   * Makes the agent's volume (home) when it is not there. A volume with a hard limit is limited to `diskBytes` from now on,
   * or to nothing where that is not given.
   */
  ensureVolume(agentId: string, options?: CallOptions & { diskBytes?: number }): Promise<void>
  /**
   * Makes the sandbox, not started; the agent's fixed name is the lock. A sandbox that is there with the same spec is
   * kept; one with another spec (version, limits, environment), or with a fault, is replaced. The volume is not touched.
   */
  create(spec: SandboxSpec, options?: CallOptions): Promise<void>
  /** Starts it and resolves when agentd's address is known; nothing happens to one that runs. */
  start(agentId: string, options?: CallOptions): Promise<Sandbox>
  /** Ends it: SIGTERM, then SIGKILL after `graceMs`. Nothing happens to one that does not run, or is not there. */
  stop(agentId: string, options?: CallOptions & { graceMs?: number }): Promise<void>
  /** Removes the sandbox, running or not, its network, and with `volume` its home as well. */
  remove(agentId: string, options: CallOptions & { volume: boolean }): Promise<void>
  /** The agent's home as a tar, its files as they are, also while it runs. */
  readHome(agentId: string, options?: CallOptions): AsyncIterable<Uint8Array>
  /** Makes a tar the agent's home, in place of one that it has. Only while there is no sandbox. */
  writeHome(agentId: string, content: AsyncIterable<Uint8Array>, options?: CallOptions): Promise<void>
  inspect(agentId: string, options?: CallOptions): Promise<Sandbox | undefined>
  /** Every sandbox of this Berth, and the agents of volumes without one. */
  list(options?: CallOptions): Promise<{ sandboxes: Sandbox[]; volumes: string[] }>
  stats(agentId: string, options?: CallOptions): Promise<SandboxStats>
  /** Yields until `signal` fires; reconnects by itself. Events may get lost: whoever listens also lists. */
  events(options: { signal: AbortSignal }): AsyncIterable<SandboxEvent>
  /** The versions of the engine that are at hand. */
  engineVersions(options?: CallOptions): Promise<EngineVersion[]>
  /** The same, with where they are and how large. */
  engines(options?: CallOptions): Promise<EngineAtHand[]>
  /**
   * Makes a version available where it is not: builds its image, or installs it. Long; `onLine` gets what it prints.
   * @throws SandboxError `no_image` if it does not exist, or no agent can run it.
   */
  prepareEngine(version: string, options?: CallOptions & { onLine?: (line: string) => void }): Promise<void>
  removeEngine(version: string, options?: CallOptions): Promise<void>
  /**
   * Notes that the versions of `keep` are needed, and removes engines that nobody, this Berth or another one on the
   * same machine, has needed for `graceMs` milliseconds. @returns what was removed.
   */
  tidyEngines(options: CallOptions & Tidying): Promise<string[]>
  /**
   * Why agents must not run here, which whoever starts them asks once; null when they may. Where it is missing, nothing keeps
   * them from it. @throws SandboxError when that cannot be found out now.
   */
  findObstacle?(options?: CallOptions): Promise<string | null>
  /** Says which needs of the engine are not met here, and what to do about it; null if all are met. */
  findUnmetNeed?(): Promise<string | null>
  /** @throws SandboxError `unreachable` when it cannot be used now. */
  ping(options?: CallOptions): Promise<void>
  close(): Promise<void>
}

/** Turns an error of the system, or of the engine's installer, into a driver's. An abort by the caller stays as it is. */
export function toSandboxError(error: unknown, signal?: AbortSignal): unknown {
  if (error instanceof SandboxError || signal?.aborted || !(error instanceof Error)) return error
  const { message } = error
  if (error instanceof EngineError) {
    const code = error.code === 'disk_full' ? 'disk_full' : error.code === 'failed' ? 'internal' : 'no_image'
    return new SandboxError(code, message, { cause: error })
  }
  if (hasCode(error, 'ENOSPC', 'EDQUOT'))
    return new SandboxError('disk_full', `no space is left: ${message}`, { cause: error })
  return new SandboxError('internal', message, { cause: error })
}

/** Names what a sandbox was made from: the same for the same content, whatever the order of its keys. */
export function hashOf(content: unknown): string {
  const text = JSON.stringify(content, (_, part) =>
    part && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
