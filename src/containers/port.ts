/**
 * Where agents run: Docker containers, or processes of this machine. A sandbox holds one agent's agentd and all
 * that it starts; its volume is the agent's home, which outlives it. Every call may be made twice.
 */
import type { AgentdConfig } from '../../agentd/protocol.ts'

export type Runtime = 'docker' | 'process'

/** What a sandbox is made of. */
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
  /** Where agentd answers, `address:port`, while it runs. */
  address: string | null
  /** Why it ended, while it is `exited`. */
  exitCode: number | null
  oomKilled: boolean
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
export interface EngineAtHand {
  version: string
  /** Name of its image, or its folder. */
  place: string
  /** On the disk; images share part of it. */
  bytes: number
}

export type ContainerErrorCode =
  /** The engine (Docker) does not answer. */
  | 'unreachable'
  /** There is no such sandbox. */
  | 'not_found'
  /** The engine version is neither there nor can it be made. */
  | 'no_image'
  /** No space is left. */
  | 'disk_full'
  | 'internal'

export class ContainerError extends Error {
  override name = 'ContainerError'
  readonly code: ContainerErrorCode

  constructor(code: ContainerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

interface CallOptions {
  signal?: AbortSignal
}

/** @throws ContainerError from every method. */
export interface Containers {
  readonly runtime: Runtime
  /** Makes the agent's volume (home) when it is not there. */
  ensureVolume(agentId: string, options?: CallOptions): Promise<void>
  /**
   * Makes the sandbox, not started; the agent's fixed name is the lock. One that is there with the same spec is
   * kept; one with another spec (version, limits, environment) is replaced. The volume is not touched.
   */
  create(spec: SandboxSpec, options?: CallOptions): Promise<void>
  /** Starts it and resolves when agentd's address is known; nothing happens to one that runs. */
  start(agentId: string, options?: CallOptions): Promise<Sandbox>
  /** Ends it: SIGTERM, then SIGKILL after `graceMs`. Nothing happens to one that does not run, or is not there. */
  stop(agentId: string, options?: CallOptions & { graceMs?: number }): Promise<void>
  /** Removes the sandbox, running or not, its network, and with `volume` its home as well. */
  remove(agentId: string, options: CallOptions & { volume: boolean }): Promise<void>
  inspect(agentId: string, options?: CallOptions): Promise<Sandbox | undefined>
  /** Every sandbox of this Berth, and the agents of volumes without one. */
  list(options?: CallOptions): Promise<{ sandboxes: Sandbox[]; volumes: string[] }>
  stats(agentId: string, options?: CallOptions): Promise<SandboxStats>
  /** Yields until `signal` fires; reconnects by itself. Events may get lost: whoever listens also lists. */
  events(options: { signal: AbortSignal }): AsyncIterable<SandboxEvent>
  /** The versions of the engine that are at hand. */
  engineVersions(options?: CallOptions): Promise<string[]>
  /** The same, with where they are and how large. */
  engines(options?: CallOptions): Promise<EngineAtHand[]>
  /** Makes a version available: builds its image, or installs it. Long; `onLine` gets what it prints. */
  prepareEngine(version: string, options?: CallOptions & { onLine?: (line: string) => void }): Promise<void>
  removeEngine(version: string, options?: CallOptions): Promise<void>
  /** @throws ContainerError `unreachable` when it cannot be used now. */
  ping(options?: CallOptions): Promise<void>
  close(): Promise<void>
}
