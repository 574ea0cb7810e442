/**
 * Agents as processes of this machine, for trying Berth without Docker. Their only isolation is a system user shared by
 * all agents if Berth runs as root, and namespaces otherwise (`process/wall.ts`). All state is in files
 * (`process/state.ts`), so that any worker with the folder finds a sandbox again. Two workers never work on the same
 * sandbox at once.
 */
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../errors.ts'
import { describeShortage } from '../lib/disk.ts'
import { DiskReserve } from '../lib/disk-reserve.ts'
import { freePort } from '../lib/net/bind.ts'
import { isAlive, type ProcessIdentity } from '../lib/process/process-identity.ts'
import type { Logger } from '../log.ts'
import {
  engineFolder,
  folderBytes,
  installEngine,
  installedEngines,
  isEngineVersion,
  removeInstalledEngine,
} from '../openclaw/install.ts'
import { nodeObstacle, readNodeRange } from '../openclaw/node-range.ts'
import { type Tidying, tidyInstalled } from '../openclaw/tidy.ts'
import {
  type CallOptions,
  type EngineVersion,
  hashOf,
  type Sandbox,
  type SandboxEvent,
  type SandboxRuntime,
  type SandboxSpec,
  type SandboxStats,
  toSandboxError,
} from './port.ts'
import { EngineCompiler } from './process/compile.ts'
import { existing, toSandbox } from './process/found.ts'
import { readHome, writeHome } from './process/home.ts'
import { EngineNeeds } from './process/needs.ts'
import { openPlace, type PlaceOptions, readableEngine, removeEngineCopy } from './process/place.ts'
import type { Place } from './process/place-record.ts'
import { spawnAgentd, waitUntilReady } from './process/spawn.ts'
import {
  type AgentPaths,
  agentIds,
  holding,
  isMarked,
  makeOwnFolder,
  markFolder,
  pathsOf,
  type RunState,
  readState,
  removeOwnFolder,
  type SandboxState,
  writeState,
} from './process/state.ts'
import { endRun, statsOf } from './process/table.ts'
import { type Runs, watchRuns } from './process/watch.ts'
import { NOT_WALLED, WALLS, type Wall } from './walls.ts'

export interface ProcessOptions extends PlaceOptions {
  log: Logger
  /** Why agents run as processes; logged. */
  why?: string | undefined
  /** See `Disks`. */
  reserveBytes?: number | undefined
}

const GRACE_MS = 10_000
/** Once its process has ended, the exit code is available almost at once or, if another worker started it, never. */
const EXIT_CODE_MS = 1000

/** @throws SandboxError if agents cannot run here as processes; its message says what to do. */
export async function openProcessRuntime(options: ProcessOptions): Promise<SandboxRuntime> {
  try {
    const place = await openPlace(options)
    const { log, reserveBytes, why } = options
    const { wall, whyNoNamespaces } = place
    const advice = wall === 'none' ? `${NOT_WALLED}. Existing agents keep running` : undefined
    log.warn(
      { runtime: 'process', why, wall, whyNoNamespaces, advice },
      `agents run as processes of this machine, on loopback, ${WALLS[wall]}`,
    )
    if (place.unmetNeed) log.error({ runtime: 'process' }, `no agent can start: ${place.unmetNeed}`)
    const reserve = new DiskReserve({ folders: { agents: place.agentsDir }, reserveBytes })
    return new ProcessRuntime(place, reserve, log)
  } catch (error) {
    throw toSandboxError(error)
  }
}

class ProcessRuntime implements SandboxRuntime {
  readonly driver = 'process'
  readonly wall: Wall
  readonly #place: Place
  readonly #needs: EngineNeeds
  readonly #compiler: EngineCompiler
  readonly #reserve: DiskReserve
  readonly #log: Logger
  readonly #closing = new AbortController()
  /** Exit codes of processes that this process started, by run: the system reports them only to the parent. */
  readonly #exits = new Map<string, Promise<number>>()
  /** Cleanups that run after agents have ended and write into their folders. */
  readonly #tidying = new Set<Promise<void>>()

  constructor(place: Place, reserve: DiskReserve, log: Logger) {
    this.wall = place.wall
    this.#place = place
    this.#needs = new EngineNeeds(place, place.unmetNeed)
    this.#compiler = new EngineCompiler(place, log)
    this.#reserve = reserve
    this.#log = log
  }

  ensureVolume(agentId: string, { signal }: CallOptions = {}): Promise<void> {
    return this.#withLock(agentId, signal, (paths) => this.#makeFolders(paths))
  }

  create(spec: SandboxSpec, { signal }: CallOptions = {}): Promise<void> {
    return this.#withLock(spec.agentId, signal, async (paths) => {
      const hash = hashOf(spec)
      const state = await readState(paths)
      if (state?.hash === hash) return
      if (!(await installedEngines(this.#place.enginesDir)).includes(spec.engineVersion))
        throw new SandboxError('no_image', `version ${spec.engineVersion} is not installed`)
      if (state?.run) await endRun(state.run, GRACE_MS)
      await this.#makeFolders(paths)
      await writeState(paths, { spec, hash, run: null })
    })
  }

  start(agentId: string, { signal }: CallOptions = {}): Promise<Sandbox> {
    return this.#withLock(agentId, signal, async (paths) => {
      const state = await existing(paths, agentId)
      let run = state.run
      if (!run?.leader || !(await isAlive(run.leader))) run = await this.#launch(paths, state, run)
      if (run.leader && run.port === null) {
        run = { ...run, port: await this.#awaitReady(paths, run, signal) }
        await writeState(paths, { ...state, run })
      }
      return toSandbox({ ...state, run })
    })
  }

  stop(
    agentId: string,
    { signal, graceMs = GRACE_MS }: CallOptions & { graceMs?: number } = {},
  ): Promise<void> {
    return this.#withLock(agentId, signal, async (paths) => {
      const state = await readState(paths)
      if (!state?.run) return
      await endRun(state.run, graceMs)
      const exitCode = await Promise.race([this.#exits.get(state.run.id), sleep(EXIT_CODE_MS, undefined)])
      if (exitCode !== undefined) await writeState(paths, { ...state, run: { ...state.run, exitCode } })
    })
  }

  remove(agentId: string, { signal, volume }: CallOptions & { volume: boolean }): Promise<void> {
    return this.#withLock(agentId, signal, async (paths) => {
      if (!isMarked(paths)) return
      const state = await readState(paths)
      if (state?.run) await endRun(state.run, 0)
      await rm(paths.state, { force: true })
      await removeOwnFolder(paths.temporary, this.#place.user)
      if (!volume) return
      await removeOwnFolder(paths.home, this.#place.user)
      await rm(paths.folder, { recursive: true, force: true })
    })
  }

  readHome(agentId: string, { signal }: CallOptions = {}): AsyncIterable<Uint8Array> {
    return readHome(pathsOf(this.#place.agentsDir, agentId), this.#place.user, signal)
  }

  writeHome(
    agentId: string,
    content: AsyncIterable<Uint8Array>,
    { signal }: CallOptions = {},
  ): Promise<void> {
    return this.#withLock(agentId, signal, async (paths) => {
      if (await readState(paths)) throw new SandboxError('internal', `${agentId} has a sandbox`)
      await this.#makeFolders(paths)
      await writeHome(paths, content, this.#place.user, signal)
    })
  }

  async inspect(agentId: string): Promise<Sandbox | undefined> {
    return this.#guarded(undefined, async () => {
      const state = await readState(pathsOf(this.#place.agentsDir, agentId))
      return state ? toSandbox(state) : undefined
    })
  }

  list(): Promise<{ sandboxes: Sandbox[]; volumes: string[] }> {
    return this.#guarded(undefined, async () => {
      const sandboxes: Sandbox[] = []
      const volumes: string[] = []
      for (const agentId of await agentIds(this.#place.agentsDir)) {
        const sandbox = await this.inspect(agentId)
        if (sandbox) sandboxes.push(sandbox)
        else volumes.push(agentId)
      }
      return { sandboxes, volumes }
    })
  }

  stats(agentId: string): Promise<SandboxStats> {
    return this.#guarded(undefined, async () => {
      const { run } = await existing(pathsOf(this.#place.agentsDir, agentId), agentId)
      return run ? statsOf(run) : { memoryBytes: 0, cpuSeconds: 0, pids: 0 }
    })
  }

  events({ signal }: { signal: AbortSignal }): AsyncIterable<SandboxEvent> {
    return watchRuns(() => this.#runs(), AbortSignal.any([signal, this.#closing.signal]))
  }

  engines({ sizes }: CallOptions & { sizes?: boolean } = {}): Promise<EngineVersion[]> {
    return this.#guarded(undefined, async () => {
      const engines = (await installedEngines(this.#place.enginesDir)).map(async (version) => {
        const place = engineFolder(this.#place.enginesDir, version)
        const obstacle = await this.#obstacleTo(version)
        return { version, obstacle, place, ...(sizes && { bytes: await folderBytes(place) }) }
      })
      return Promise.all(engines)
    })
  }

  prepareEngine(
    version: string,
    { signal, onLine }: CallOptions & { onLine?: (line: string) => void } = {},
  ): Promise<void> {
    return this.#guarded(signal, async () => {
      await installEngine({ version, dir: this.#place.enginesDir, onLine, signal })
      const obstacle = await this.#obstacleTo(version)
      if (obstacle) throw new SandboxError('no_image', obstacle)
      await this.#compiler.compile(await readableEngine(this.#place, version), { onLine, signal })
    })
  }

  removeEngine(version: string): Promise<void> {
    return this.#guarded(undefined, async () => {
      await removeInstalledEngine(this.#place.enginesDir, version)
      await removeEngineCopy(version)
    })
  }

  tidyEngines({ signal, ...tidying }: CallOptions & Tidying): Promise<string[]> {
    return this.#guarded(signal, async () => {
      const removed = await tidyInstalled(this.#place.enginesDir, tidying)
      const left = await installedEngines(this.#place.enginesDir)
      for (const version of removed.map((folder) => basename(folder)).filter(isEngineVersion))
        if (!left.includes(version)) await removeEngineCopy(version)
      return removed
    })
  }

  findUnmetNeed(): Promise<string | null> {
    return this.#guarded(undefined, () => this.#needs.last())
  }

  async ping(): Promise<void> {
    await this.#guarded(undefined, () => agentIds(this.#place.agentsDir))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#tidying)
  }

  /** Agents run on this process's own Node. */
  async #obstacleTo(version: string): Promise<string | null> {
    const range = await readNodeRange(engineFolder(this.#place.enginesDir, version))
    return nodeObstacle(version, { range, node: process.versions.node })
  }

  /**
   * @throws SandboxError for a new agent: `not_walled` if nothing isolates it, `disk_full` while the disk is down to
   *   its reserve. Existing agents continue: they can be reached, cleaned and deleted.
   */
  async #makeFolders(paths: AgentPaths): Promise<void> {
    if (!isMarked(paths)) {
      if (this.wall === 'none') throw new SandboxError('not_walled', NOT_WALLED)
      const short = await this.#reserve.findShort()
      if (short) throw new SandboxError('disk_full', describeShortage(short))
    }
    await markFolder(paths)
    for (const path of [paths.home, paths.temporary]) await makeOwnFolder(path, this.#place.user)
  }

  /** Starts a new agentd, after ending the leftovers of an earlier run. */
  async #launch(paths: AgentPaths, state: SandboxState, previous: RunState | null): Promise<RunState> {
    if (previous) await endRun(previous, 0)
    const unmet = await this.#needs.look()
    if (unmet) throw new SandboxError('unmet_need', unmet)
    const { spec } = state
    const engineDir = await readableEngine(this.#place, spec.engineVersion)
    await this.#makeFolders(paths)
    // Other workers choose ports at the same time: the chosen port must be visible before the next choice.
    const run = await holding(this.#place.agentsDir, '.ports', undefined, async () => {
      const gatewayPort = await freePort(await this.#takenPorts())
      const chosen = { id: randomUUID(), startedAt: new Date().toISOString(), gatewayPort }
      const begun: RunState = { ...chosen, leader: null, port: null, exitCode: null }
      await writeState(paths, { ...state, run: begun })
      return begun
    })
    const { leader, exited } = await spawnAgentd({ place: this.#place, paths, spec, engineDir, run })
    this.#exits.set(run.id, exited)
    void exited.then((exitCode) => {
      const tidying = this.#ended(spec.agentId, run.id, exitCode)
      this.#tidying.add(tidying)
      void tidying.then(() => this.#tidying.delete(tidying))
    })
    const started = { ...run, leader }
    await writeState(paths, { ...state, run: started })
    return started
  }

  async #awaitReady(paths: AgentPaths, run: RunState, signal: AbortSignal | undefined): Promise<number> {
    try {
      return await waitUntilReady(this.#place, paths, run.leader as ProcessIdentity, signal)
    } catch (error) {
      // An aborted start continues; the next start adopts it.
      if (!signal?.aborted) await endRun(run, 0)
      throw error
    }
  }

  async #takenPorts(): Promise<Set<number>> {
    const { agentsDir } = this.#place
    const states = (await agentIds(agentsDir)).map((id) => readState(pathsOf(agentsDir, id)))
    return new Set((await Promise.all(states)).flatMap((state) => state?.run?.gatewayPort ?? []))
  }

  async #runs(): Promise<Runs> {
    const { agentsDir } = this.#place
    const found: Runs = new Map()
    for (const agentId of await agentIds(agentsDir)) {
      const state = await readState(pathsOf(agentsDir, agentId))
      if (!state) continue
      const { run } = state
      found.set(agentId, {
        run: run?.leader ? run.id : null,
        running: run?.leader ? await isAlive(run.leader) : false,
      })
    }
    return found
  }

  /** Handles the end of agentd: records the exit code, if known, and ends the leftovers. */
  async #ended(agentId: string, runId: string, exitCode?: number): Promise<void> {
    const { signal } = this.#closing
    if (signal.aborted) return
    try {
      await this.#withLock(agentId, signal, async (paths) => {
        const state = await readState(paths)
        if (state?.run?.id !== runId) return
        if (exitCode !== undefined) await writeState(paths, { ...state, run: { ...state.run, exitCode } })
        await endRun(state.run, 0)
      })
    } catch (error) {
      if (!signal.aborted)
        this.#log.warn({ err: error, agentId }, 'cannot clean up after an agent that has ended')
    } finally {
      this.#exits.delete(runId)
    }
  }

  /** Runs `work` while no other worker with this folder works on this agent. */
  #withLock<T>(
    agentId: string,
    signal: AbortSignal | undefined,
    work: (paths: AgentPaths) => Promise<T>,
  ): Promise<T> {
    return this.#guarded(signal, () => {
      const paths = pathsOf(this.#place.agentsDir, agentId)
      return holding(this.#place.agentsDir, agentId, signal, () => work(paths))
    })
  }

  async #guarded<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw toSandboxError(error, signal)
    }
  }
}
