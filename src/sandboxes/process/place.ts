/**
 * The folders and the user of process agents. If Berth runs as root, they run as a system user, who must be able to
 * enter their folders and to read Node, agentd and the engine. That fails for a checkout below a home with mode 700.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SandboxError } from '../../errors.ts'
import { hasCode, readIfExists, removeLeftovers, replaceFile, temporaryName } from '../../lib/files.ts'
import {
  canEnter,
  isRoot,
  type RunAs,
  run,
  SYSTEM_FOLDER,
  systemUser,
} from '../../lib/process/system-user.ts'
import { findUnmetNeed, whyNoWall } from './needs.ts'
import type { Place } from './place-record.ts'
import { makeOwnFolder, removeOwnFolder } from './state.ts'
import { commonView } from './wall.ts'

export interface PlaceOptions {
  dataDir: string
  /**
   * Folder that the operator set for agents; undefined: below the data folder if the agents' user can enter it,
   * otherwise elsewhere.
   */
  agentsDir?: string | undefined
  enginesDir?: string | undefined
  /** The agentd folder in this checkout. */
  agentdDir: string
  /** Files outside the data folder that agents must not read. */
  secretFiles?: readonly string[] | undefined
  /** Whether the operator accepts that agents can read Berth's keys. */
  acceptsNoWall?: boolean | undefined
}

const USER = 'berth-agent'
const COPY_LIMIT_MS = 600_000

/**
 * Finds the user and the folders, and creates missing ones.
 * @throws SandboxError `internal` if agents cannot run here; its message says what to do.
 */
export async function openPlace(options: PlaceOptions): Promise<Place> {
  const user = await agentUser()
  const agentsDir = options.agentsDir ?? (await defaultAgentsDir(options.dataDir, user))
  const enginesDir = options.enginesDir ?? (await defaultEnginesDir(options.dataDir, user))
  await openFolder(agentsDir)
  await openFolder(enginesDir)
  if (!(await canEnter(agentsDir, user))) {
    throw new SandboxError(
      'internal',
      `Agents run as the system user "${USER}", who cannot enter ${agentsDir}: give every folder above it the ` +
        'permission x for others (chmod o+x), or set BERTH_AGENTS_DIR to another one.',
    )
  }
  const node = await readable(process.execPath, user, `node-${process.version}`, '-RLl')
  const sources = await digest(options.agentdDir)
  const agentd = join(await readable(options.agentdDir, user, `agentd-${sources}`, '-RL'), 'main.ts')
  const place = {
    agentsDir,
    enginesDir,
    user,
    node,
    agentd,
    privateTmp: undefined,
    whyNoNamespaces: undefined,
    view: undefined,
  }
  if (isRoot()) {
    const compileCache = await makeCompileCache(place, sources, SYSTEM_FOLDER)
    return withTmp({ ...place, compileCache, wall: 'user' }, options)
  }
  const cache = join(options.dataDir, 'cache')
  const view = await commonView({ ...options, ...place })
  const why = await whyNoWall({ ...place, view }, { ...options, secret: options.secretFiles ?? [] })
  if (why !== null) {
    const wall = options.acceptsNoWall ? 'accepted' : 'none'
    return withNeeds({ ...place, compileCache: cache, wall, whyNoNamespaces: why })
  }
  const compileCache = await makeCompileCache(place, sources, cache)
  if (compileCache) view.readOnly.push(compileCache)
  return withNeeds({ ...place, compileCache, wall: 'namespaces', view })
}

type UncheckedPlace = Omit<Place, 'unmetNeed'>

const withNeeds = async (place: UncheckedPlace): Promise<Place> => ({
  ...place,
  unmetNeed: await findUnmetNeed(place),
})

/** Gives agents their own /tmp if Berth runs as root and the kernel allows it. */
async function withTmp(shared: UncheckedPlace, { dataDir }: PlaceOptions): Promise<Place> {
  const { root: stage, readOnly } = await commonView({ ...shared, dataDir })
  const { compileCache } = shared
  const needed = compileCache ? [...readOnly, compileCache] : readOnly
  const own = await withNeeds({ ...shared, privateTmp: { stage, needed } })
  return own.unmetNeed === null ? own : withNeeds(shared)
}

/**
 * Creates agentd's compile cache, which agents only read, because they share a user. Without it every agentd runs
 * Node's TypeScript compiler, which takes 0.2 s of processor time and 30 MB.
 */
async function makeCompileCache(
  { node, agentd, user }: Pick<Place, 'node' | 'agentd' | 'user'>,
  sources: string,
  folder: string,
): Promise<string | undefined> {
  // Node's cache entries also depend on the path of a source file.
  const key = createHash('sha256').update(agentd).update(sources).digest('hex').slice(0, 16)
  const cache = join(folder, `agentd-cache-${process.version}-${key}`)
  if (existsSync(cache)) return cache
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const draft = temporaryName(cache)
  try {
    await makeOwnFolder(draft, user)
    // The entries depend on the user that runs Node. agentd exits at once, because it has no configuration.
    await run('env', [`NODE_COMPILE_CACHE=${draft}`, node, agentd], user)
    if ((await readdir(draft)).length === 0) return undefined
    await run('chmod', ['-R', 'a+rX', draft], user)
    await copyTo(draft, cache, '-RP')
    return cache
  } catch {
    return undefined
  } finally {
    await removeOwnFolder(draft, user).catch(() => {})
    await rm(draft, { recursive: true, force: true })
  }
}

/**
 * The folder of an installed version, readable by the agents' user: the original, or a copy of hard links, since it has
 * hundreds of megabytes. Links inside it stay links, because a program finds its own files next to its link's target.
 */
export function readableEngine(place: Place, version: string): Promise<string> {
  return readable(join(place.enginesDir, version), place.user, join('engines', version), '-RHl')
}

/** Removes the copy created by {@link readableEngine}, if any. */
export async function removeEngineCopy(version: string): Promise<void> {
  if (isRoot()) await rm(join(SYSTEM_FOLDER, 'engines', version), { recursive: true, force: true })
}

async function agentUser(): Promise<RunAs> {
  if (!isRoot()) return {}
  const user = await systemUser(USER)
  if (user) return user
  throw new SandboxError(
    'internal',
    `Agents do not run as root, and the system user "${USER}" does not exist: create it (useradd --system ${USER}), ` +
      'start Berth as a normal user, or use Docker (BERTH_RUNTIME=docker).',
  )
}

/**
 * The data folder. If the agents' user of a root Berth cannot enter it, a separate folder below /var/lib/berth. The
 * choice is recorded, so that a moved data folder keeps its agents.
 */
async function defaultAgentsDir(dataDir: string, user: RunAs): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  const record = join(dataDir, 'agents.json')
  const written = await readIfExists(record)
  if (written) return (JSON.parse(written) as { location: string }).location
  const within = join(dataDir, 'agents')
  if (await canEnter(dataDir, user)) return within
  const name = createHash('sha256')
    .update(await realpath(dataDir))
    .digest('hex')
    .slice(0, 12)
  const location = join(SYSTEM_FOLDER, `agents-${name}`)
  await replaceFile(record, `${JSON.stringify({ location })}\n`, 0o644)
  return location
}

/** All Berths of this machine share the engine versions. */
async function defaultEnginesDir(dataDir: string, user: RunAs): Promise<string> {
  return join((await canEnter(dataDir, user)) ? dataDir : SYSTEM_FOLDER, 'engines')
}

/** Creates a folder that everybody may pass through; an existing folder keeps its permissions. */
async function openFolder(path: string): Promise<void> {
  if (!(await mkdir(path, { recursive: true }))) return
  await chmod(path, 0o711)
  if (path.startsWith(`${SYSTEM_FOLDER}/`)) await chmod(SYSTEM_FOLDER, 0o755)
}

/**
 * A file or folder that `user` can read: the original, or a copy below /var/lib/berth, which gets its name when it is
 * complete.
 * @param copying options of cp(1) for the copy.
 * @throws SandboxError if the copy cannot be read either.
 */
async function readable(path: string, user: RunAs, name: string, copying: string): Promise<string> {
  if (await canRead(path, user)) return path
  const copy = join(SYSTEM_FOLDER, name)
  if (!existsSync(copy)) await copyTo(path, copy, copying)
  if (await canRead(copy, user)) return copy
  throw new SandboxError(
    'internal',
    `The system user "${USER}" can read neither ${path} nor the copy ${copy}`,
  )
}

/** True for a file that can be read, or a folder with contents from npm or git. */
const canRead = async (path: string, user: RunAs): Promise<boolean> =>
  (await run('/bin/sh', ['-c', 'test -r "$1" && test -x "$1"', 'sh', path], user)).ok

/** Copies a file or folder, which gets its name when it is complete. @param copying options of cp(1). */
export async function copyTo(from: string, to: string, copying: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await chmod(dirname(to), 0o755)
  await removeLeftovers(to, COPY_LIMIT_MS)
  const fresh = temporaryName(to)
  try {
    let copied = await run('cp', [copying, from, fresh], {}, COPY_LIMIT_MS)
    // Hard links to another disk are impossible, so this copies.
    if (!copied.ok) copied = await run('cp', [copying.replace('l', ''), from, fresh], {}, COPY_LIMIT_MS)
    if (!copied.ok)
      throw new SandboxError('internal', `${from} could not be copied to ${to}: ${copied.output}`)
    await rename(fresh, to)
  } catch (error) {
    // Another process on this machine was faster; its copy is the same.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}

/** The hash of a folder of sources, so that another version of Berth creates another copy. */
async function digest(folder: string): Promise<string> {
  const hash = createHash('sha256')
  for (const entry of (await readdir(folder, { recursive: true })).sort()) {
    if ((await stat(join(folder, entry))).isFile())
      hash.update(entry).update(await readFile(join(folder, entry)))
  }
  return hash.digest('hex').slice(0, 16)
}
