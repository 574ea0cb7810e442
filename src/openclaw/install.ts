/** Engine versions installed as folders: the process runtime runs them, and images are built from them. */
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { compare } from 'semver'
import type { Config } from '../config.ts'
import type { Queryable } from '../db/pool.ts'
import { SandboxError } from '../errors.ts'
import { hasCode, removeLeftovers, temporaryName } from '../lib/files.ts'
import { withLock } from '../lib/process/file-lock.ts'
import { npm } from './npm.ts'

const LAUNCH_MS = 120_000
const DU_MS = 60_000
const ENGINE_VERSION = /^\d{4}\.\d{1,2}\.\d{1,3}$/

/** True if a text has the form of an engine version; no other text gets into a command or a path. */
export const isEngineVersion = (version: string): boolean => ENGINE_VERSION.test(version)

/** @throws SandboxError if it does not. */
export function requireEngineVersion(version: string): void {
  if (!isEngineVersion(version))
    throw new SandboxError('no_image', `${JSON.stringify(version)} is not a version like 2026.9.6`)
}

/** The platform that npm uses to choose prebuilt packages, in npm's terms. */
export interface Platform {
  os: string
  cpu: string
  libc: 'glibc' | 'musl'
}

export interface InstallOptions {
  version: string
  /** Folder of all versions. */
  dir: string
  /** Receives progress, line by line. */
  onLine?: ((line: string) => void) | undefined
  signal?: AbortSignal | undefined
  /** The machine that will run it; this machine by default. */
  platform?: Platform
}

/** The folder of a version, installed or not. */
export function engineFolder(dir: string, version: string, platform = thisPlatform()): string {
  requireEngineVersion(version)
  const here = thisPlatform()
  const same = platform.os === here.os && platform.cpu === here.cpu && platform.libc === here.libc
  return join(dir, same ? version : `${version}-${platform.os}-${platform.cpu}-${platform.libc}`)
}

/**
 * Installs a version from the package registry, once. Resolves to its folder, which contains `node_modules/openclaw`.
 * The folder appears whole or not at all; concurrent installers, including other processes, wait for the first.
 * @throws SandboxError
 */
export async function installEngine(options: InstallOptions): Promise<string> {
  const folder = engineFolder(options.dir, options.version, options.platform)
  if ((await isThere(folder)) && (await isComplete(folder))) return folder
  await mkdir(options.dir, { recursive: true })
  return withLock(enginesLock(options.dir), options, () => installLocked(options))
}

/**
 * The lock of an engines folder. Only its holder may add engines, remove them, or build images from them. Versions up
 * to 0.2.0 used two other lock files, `.install.lock` and `.build.lock`, which may still exist.
 */
export const enginesLock = (dir: string): string => join(dir, '.engines.lock')

/** {@link installEngine} for callers that hold {@link enginesLock}. */
export async function installLocked(options: InstallOptions): Promise<string> {
  const { version, dir, onLine, signal, platform = thisPlatform() } = options
  const folder = engineFolder(dir, version, platform)
  if (await isThere(folder)) {
    await completeLifecycle(folder, version, signal)
    return folder
  }
  // Only one process holds the lock, so other folders of this kind belong to dead processes.
  await removeLeftovers(folder, 0)
  const draft = temporaryName(folder)
  try {
    await mkdir(draft)
    await fill(draft, version, platform, onLine, signal)
    await rename(draft, folder)
  } catch (error) {
    await rm(draft, { recursive: true, force: true, maxRetries: 5 })
    if (hasCode(error, 'ENOSPC', 'EDQUOT'))
      throw new SandboxError('disk_full', `no space is left for ${folder}`)
    throw error
  }
  onLine?.(`openclaw ${version} is installed`)
  return folder
}

/** The versions that are installed for this machine in `dir`. */
export async function installedEngines(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch((error) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  return names.filter(isEngineVersion)
}

/** Size of a folder on disk in bytes, as `du` counts it. */
export async function folderBytes(folder: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['-sk', folder], { timeout: DU_MS })
  return Number.parseInt(stdout, 10) * 1024
}

/**
 * Removes an installed version, for every platform. Does nothing if there is none. Waits while others install engines
 * or build images from them.
 */
export async function removeInstalledEngine(dir: string, version: string): Promise<void> {
  if (!(await isThere(dir))) return
  await withLock(enginesLock(dir), {}, () => removeHolding(dir, version))
}

/** {@link removeInstalledEngine} for callers that hold {@link enginesLock}. */
export async function removeHolding(dir: string, version: string): Promise<void> {
  const folder = engineFolder(dir, version)
  for (const name of await readdir(dir)) {
    if (name !== version && !name.startsWith(`${version}-`)) continue
    // Renames it first, so that a partly removed folder is never mistaken for an installed version.
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
  // The engine's install scripts only print and tidy up; its native code is prebuilt.
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
  await completeLifecycle(draft, version, signal)
  onLine?.('Removing files that running it does not need')
  await prune(draft)
}

/** False for an installed version that still needs its first launch on a Node that can run it. */
export const isComplete = async (folder: string): Promise<boolean> =>
  !(await isThere(join(folder, 'node_modules/openclaw/.openclaw-lifecycle-pending')))

/**
 * Without its install scripts the package counts as half installed, and finishes at its first launch. Berth does that
 * launch, because agents cannot write to the folder. An engine that needs another Node than Berth's waits: an image has
 * its own Node (engine.Dockerfile), and a later start of Berth may have a suitable one.
 */
async function completeLifecycle(
  folder: string,
  version: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (await isComplete(folder)) return
  // Imported only here: `web` lists versions and never compares Node ranges.
  const { nodeObstacle, readNodeRange } = await import('./node-range.ts')
  if (nodeObstacle(version, { range: await readNodeRange(folder), node: process.versions.node })) return
  const options = { timeout: LAUNCH_MS, ...(signal && { signal }) }
  const program = join(folder, 'node_modules/openclaw/openclaw.mjs')
  await promisify(execFile)(process.execPath, [program, '--version'], options)
  if (!(await isComplete(folder)))
    throw new SandboxError('internal', 'the package does not complete its installation')
}

interface LockedPackage {
  version: string
  os?: string[]
  cpu?: string[]
  libc?: string[]
  peer?: boolean
}

/** npm silently leaves out optional packages that it could not download, such as the engine's native code. */
async function checkComplete(draft: string, version: string, platform: Platform): Promise<void> {
  const lock = JSON.parse(await readFile(join(draft, 'package-lock.json'), 'utf8'))
  const packages = Object.entries(lock.packages as Record<string, LockedPackage>).filter(
    ([path]) => path !== '',
  )
  if (lock.packages['node_modules/openclaw']?.version !== version)
    throw new SandboxError('internal', `npm installed another version than ${version}`)
  for (const [path, { os, cpu, libc }] of packages) {
    const wanted =
      (os ?? [platform.os]).includes(platform.os) &&
      (cpu ?? [platform.cpu]).includes(platform.cpu) &&
      (libc ?? [platform.libc]).includes(platform.libc)
    if (wanted && !(await isThere(join(draft, path))))
      throw new SandboxError(
        'no_image',
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

/**
 * Parts of the package that a gateway behind Berth never opens: a worker for cloud machines, the web interface
 * (disabled by Berth), the manual, and a driver for desktops, which containers lack.
 */
const FOLDERS = [
  'node_modules/openclaw/dist/worker',
  'node_modules/openclaw/dist/control-ui',
  'node_modules/openclaw/docs',
  'node_modules/@trycua',
]

/** For compilers, debuggers and readers. Other Markdown stays, because skills and hooks use it. */
const FILES = /\.(map|d\.ts|d\.mts|d\.cts)$|^(readme|changelog|history)\.md$/i

/** Removes files that running the engine does not need: about half of its bytes. */
async function prune(dir: string): Promise<void> {
  for (const folder of FOLDERS) await rm(join(dir, folder), { recursive: true, force: true })
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && FILES.test(entry.name)) await rm(join(entry.parentPath, entry.name))
}

/**
 * The versions that agents can run, newest first: those in the settings, and those that a worker has. Leaves out
 * versions that none of their workers can run; `obstacles` gives the reason.
 */
export async function knownVersions(
  db: Queryable,
  { BERTH_ENGINE_VERSIONS }: Pick<Config, 'BERTH_ENGINE_VERSIONS'>,
): Promise<{ available: string[]; obstacles: Map<string, string> }> {
  const { rows } = await db.query<{ version: string; obstacle: string | null }>(
    `SELECT version, CASE WHEN bool_and(obstacle IS NOT NULL) THEN min(obstacle) END AS obstacle
     FROM engine_version WHERE engine = 'openclaw' GROUP BY version`,
  )
  const obstacles = new Map(rows.flatMap(({ version, obstacle }) => (obstacle ? [[version, obstacle]] : [])))
  const all = [...BERTH_ENGINE_VERSIONS, ...rows.map(({ version }) => version)]
  const available = [...new Set(all)].filter((version) => isEngineVersion(version) && !obstacles.has(version))
  return { available: available.sort((a, b) => compareVersions(b, a)), obstacles }
}

/** Orders versions from the oldest; a release may be written as 2026.09.5. */
export const compareVersions = (a: string, b: string): number => compare(a, b, true)
