/** Engine versions for tests: installed once for all checkouts of this machine, where `npm test` finds them. */
import { execFile } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { compiledFolder, isCompiled } from '../../agentd/compiled.ts'
import { withLock } from '../../src/lib/process/file-lock.ts'
import { enginesLock, installEngine } from '../../src/openclaw/install.ts'
import { freePort } from './processes.ts'

/** The two versions that tests run: the default version and the previous one, between which agents are moved. */
export const ENGINE_VERSION = '2026.9.6'
export const OLDER_ENGINE_VERSION = '2026.9.5'

/** Folder for BERTH_ENGINES_DIR. */
export const enginesDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'berth/engines')

/**
 * Makes sure that versions are installed: the first time on a machine, each takes 30 to 45 s.
 * @returns {@link enginesDir}
 */
export async function ensureEngines(versions = [ENGINE_VERSION]): Promise<string> {
  for (const version of versions) await installEngine({ version, dir: enginesDir, onLine: console.error })
  return enginesDir
}

/**
 * Makes sure that a version is installed, and compiled for this user: tests of agentd run it without a worker, which
 * compiles it for the user of its agents.
 * @returns its folder.
 */
export async function compiledEngine(version = ENGINE_VERSION): Promise<string> {
  const folder = join(await ensureEngines([version]), version)
  await withLock(enginesLock(enginesDir), {}, async () => {
    if (isCompiled(folder)) return
    const program = join(import.meta.dirname, '../../agentd/compile-engine.ts')
    await promisify(execFile)(process.execPath, [
      program,
      folder,
      compiledFolder(folder),
      String(await freePort()),
    ])
  })
  return folder
}
