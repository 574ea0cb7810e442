/**
 * Compiles engines once for all agents of this machine: with V8's code of what a gateway loads, a new agent's first
 * boot takes a fifth less processor time. The code comes from a boot without an agent, in a sandbox like an agent's:
 * an agent that could write it could change what others run.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { compiledFolder, isCompiled } from '../../../agentd/compiled.ts'
import { removeLeftovers, temporaryName } from '../../lib/files.ts'
import { freePort } from '../../lib/net/bind.ts'
import { withLock } from '../../lib/process/file-lock.ts'
import { plainEnvironment, run } from '../../lib/process/system-user.ts'
import type { Logger } from '../../log.ts'
import { enginesLock } from '../../openclaw/install.ts'
import { asAgent } from './command.ts'
import { copyTo } from './place.ts'
import type { Place } from './place-record.ts'
import { makeOwnFolder, removeOwnFolder } from './state.ts'
import { SYSTEM_PATH } from './wall.ts'

/** It takes 15 s, and on a very busy machine ten times that. */
const COMPILE_MS = 240_000

interface CompileOptions {
  onLine?: ((line: string) => void) | undefined
  signal?: AbortSignal | undefined
}

export class EngineCompiler {
  readonly #place: Place
  readonly #log: Logger
  /** Folders of engines that could not be compiled; another try would delay each agent by minutes. */
  readonly #failed = new Set<string>()

  constructor(place: Place, log: Logger) {
    this.#place = place
    this.#log = log
  }

  /**
   * Compiles an engine unless that is done; takes as long as a boot. If it fails, each agent compiles the engine at its
   * first start, and keeps the code in its home.
   * @param engineDir as `readableEngine` returns it.
   */
  async compile(engineDir: string, options: CompileOptions): Promise<void> {
    if (!this.#isNeeded(engineDir)) return
    try {
      await withLock(enginesLock(this.#place.enginesDir), options, () => this.#compile(engineDir, options))
    } catch (err) {
      options.signal?.throwIfAborted()
      this.#failed.add(engineDir)
      this.#log.warn(
        { err, engineDir },
        'the engine is not compiled: each agent compiles it at its first start',
      )
    }
  }

  /** A stand-in for the engine in tests has no code to compile. */
  #isNeeded(engineDir: string): boolean {
    const { uid } = this.#place.user
    return (
      !isCompiled(engineDir, uid) &&
      !this.#failed.has(engineDir) &&
      existsSync(join(engineDir, 'node_modules/openclaw/dist'))
    )
  }

  async #compile(engineDir: string, { onLine, signal }: CompileOptions): Promise<void> {
    if (!this.#isNeeded(engineDir)) return
    onLine?.(`Compiling openclaw ${basename(engineDir)}`)
    const { agentd, agentsDir, node, user } = this.#place
    const folder = join(agentsDir, '.compile')
    await removeLeftovers(folder, COMPILE_MS)
    const draft = temporaryName(folder)
    const [home, temporary] = [join(draft, 'home'), join(draft, 'tmp')]
    const code = join(home, 'code')
    const compiler = join(dirname(agentd), 'compile-engine.ts')
    const program = [node, compiler, engineDir, code, String(await freePort())]
    const { command, user: starter } = asAgent(this.#place, { home, temporary }, [engineDir], program)
    try {
      await mkdir(draft)
      // The agents' user must be able to pass through.
      await chmod(draft, 0o711)
      for (const path of [home, temporary]) await makeOwnFolder(path, user)
      await promisify(execFile)(command[0] as string, command.slice(1), {
        ...starter,
        cwd: '/',
        env: { ...plainEnvironment, PATH: `${dirname(node)}:${SYSTEM_PATH}`, TMPDIR: temporary },
        timeout: COMPILE_MS,
        ...(signal && { signal }),
      })
      await run('chmod', ['-R', 'a+rX', code], user)
      for (const name of await readdir(code))
        await copyTo(join(code, name), join(compiledFolder(engineDir), name), '-RP')
    } finally {
      for (const path of [home, temporary]) await removeOwnFolder(path, user).catch(() => {})
      await rm(draft, { recursive: true, force: true })
    }
  }
}
