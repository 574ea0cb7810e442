/** Engine versions installed as folders: what the process runtime runs, and what images are made from. */
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode, removeLeftovers, temporaryName } from '../embedded/files.ts'
import { EngineError } from './error.ts'
import { withLock } from './lock.ts'
import { npm } from './npm.ts'
import { prune } from './prune.ts'

const LAUNCH_MS = 120_000
const DU_MS = 60_000
const ENGINE_VERSION = /^\d{4}\.\d{1,2}\.\d{1,3}$/

/** Whether a text has the form of a version of the engine; no other one gets into a command or a path. */
export const isEngineVersion = (version: string): boolean => ENGINE_VERSION.test(version)

/** @throws EngineError when it has not. */
export function requireEngineVersion(version: string): void {
  if (!isEngineVersion(version))
    throw new EngineError('unknown_version', `${JSON.stringify(version)} is not a version like 2026.9.6`)
}

/** What prebuilt packages are chosen by, in npm's words. */
export interface Platform {
  os: string
  cpu: string
  libc: 'glibc' | 'musl'
}

export interface InstallOptions {
  version: string
  /** Folder of all versions. */
  dir: string
  /** Gets what is done, line by line. */
  onLine?: ((line: string) => void) | undefined
  signal?: AbortSignal | undefined
  /** The machine that will run it; this one unless told. */
  platform?: Platform
}

/** Where a version is, or would be, installed. */
export function engineFolder(dir: string, version: string, platform = thisPlatform()): string {
  requireEngineVersion(version)
  const here = thisPlatform()
  const same = platform.os === here.os && platform.cpu === here.cpu && platform.libc === here.libc
  return join(dir, same ? version : `${version}-${platform.os}-${platform.cpu}-${platform.libc}`)
}

/**
 * Installs a version from the package registry, once: resolves to its folder, in which `node_modules/openclaw` is.
 * It appears whole or not at all; several installers, also in other processes, wait for the first.
 * @throws EngineError
 */
export async function installEngine(options: InstallOptions): Promise<string> {
  const { version, dir, onLine, signal, platform = thisPlatform() } = options
  const folder = engineFolder(dir, version, platform)
  if (await isThere(folder)) return folder
  await mkdir(dir, { recursive: true })
  return withLock(join(dir, '.install.lock'), { onLine, signal }, async () => {
    if (await isThere(folder)) return folder
    // Whoever made others of this kind has died: one holds the lock at a time.
    await removeLeftovers(folder, 0)
    const draft = temporaryName(folder)
    try {
      await mkdir(draft)
      await fill(draft, version, platform, onLine, signal)
      await rename(draft, folder)
    } catch (error) {
      await rm(draft, { recursive: true, force: true, maxRetries: 5 })
      if (hasCode(error, 'ENOSPC')) throw new EngineError('disk_full', `no space is left for ${folder}`)
      throw error
    }
    onLine?.(`openclaw ${version} is installed`)
    return folder
  })
}

/** The versions that are installed for this machine in `dir`. */
export async function installedEngines(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch((error) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  return names.filter(isEngineVersion)
}

/** What a folder takes on the disk, as `du` counts it. */
export async function folderBytes(folder: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['-sk', folder], { timeout: DU_MS })
  return Number.parseInt(stdout, 10) * 1024
}

/** Removes an installed version, for whatever machines it was installed; nothing happens when there is none. */
export async function removeInstalledEngine(dir: string, version: string): Promise<void> {
  const folder = engineFolder(dir, version)
  for (const name of await readdir(dir).catch(() => [])) {
    if (name !== version && !name.startsWith(`${version}-`)) continue
    // Under another name first, so that half of it is never taken for an installed version.
    const going = temporaryName(folder)
    await rename(join(dir, name), going)
    await rm(going, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function fill(
  draft: string,
  version: string,
  platform: Platform,
  onLine: InstallOptions['onLine'],
  signal: InstallOptions['signal'],
): Promise<void> {
  onLine?.(`Installing openclaw ${version} with npm`)
  await writeFile(join(draft, 'package.json'), '{ "private": true }\n')
  const args = [
    'install',
    `openclaw@${version}`,
    '--prefix',
    draft,
    '--save-exact',
    '--omit=dev',
    '--package-lock',
  ]
  // Its install scripts only print and tidy up; what it has of native code comes prebuilt.
  args.push(
    '--ignore-scripts',
    '--no-engine-strict',
    '--no-audit',
    '--no-fund',
    '--no-update-notifier',
    '--loglevel=error',
  )
  args.push(`--os=${platform.os}`, `--cpu=${platform.cpu}`)
  if (platform.os === 'linux') args.push(`--libc=${platform.libc}`)
  await npm(args, { cwd: draft, onLine, signal })
  await checkComplete(draft, version, platform)
  await completeLifecycle(join(draft, 'node_modules/openclaw'), signal)
  onLine?.('Removing what is not needed to run it')
  await prune(draft)
}

/**
 * Without its install scripts the package counts as half installed, and does what is left at its first launch: by us,
 * since agents cannot write here.
 */
async function completeLifecycle(folder: string, signal: InstallOptions['signal']): Promise<void> {
  const pending = join(folder, '.openclaw-lifecycle-pending')
  if (!(await isThere(pending))) return
  const options = { timeout: LAUNCH_MS, ...(signal && { signal }) }
  await promisify(execFile)(process.execPath, [join(folder, 'openclaw.mjs'), '--version'], options)
  if (await isThere(pending))
    throw new EngineError('failed', 'the package does not complete its installation')
}

interface LockedPackage {
  version: string
  os?: string[]
  cpu?: string[]
  libc?: string[]
  peer?: boolean
}

/** npm leaves out optional packages that it could not download, and says nothing: the engine's native code is such. */
async function checkComplete(draft: string, version: string, platform: Platform): Promise<void> {
  const lock = JSON.parse(await readFile(join(draft, 'package-lock.json'), 'utf8'))
  const packages = Object.entries(lock.packages as Record<string, LockedPackage>).filter(
    ([path]) => path !== '',
  )
  if (lock.packages['node_modules/openclaw']?.version !== version)
    throw new EngineError('failed', `npm installed another version than ${version}`)
  for (const [path, { os, cpu, libc }] of packages) {
    const wanted =
      (os ?? [platform.os]).includes(platform.os) &&
      (cpu ?? [platform.cpu]).includes(platform.cpu) &&
      (libc ?? [platform.libc]).includes(platform.libc)
    if (wanted && !(await isThere(join(draft, path))))
      throw new EngineError(
        'offline',
        `npm could not download ${path.replace(/^.*node_modules\//, '')}: try again`,
      )
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

let known: Platform | undefined

/** The platform of this process. */
export function thisPlatform(): Platform {
  if (known) return known
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  known = { os: process.platform, cpu: process.arch, libc: header.glibcVersionRuntime ? 'glibc' : 'musl' }
  return known
}
