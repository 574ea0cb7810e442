/**
 * Images of the engine, two for each version: the engine on its base, which takes a while to build, and agentd on top,
 * rebuilt within seconds whenever agentd changes. The hashes in their names identify their sources.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type Docker from 'dockerode'
import { SandboxError } from '../errors.ts'
import { withLock } from '../lib/process/file-lock.ts'
import { buildImage, hasImage, ignoreStatus } from './docker-build.ts'
import { enginesLock, installLocked, type Platform, requireEngineVersion } from './install.ts'
import { nodeObstacle } from './node-range.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const AGENTD = { dir: ROOT, folder: 'agentd' }
const ENGINE_RECIPE = 'engine.Dockerfile'
/** The files of agentd that the engine's image consists of. */
const ENGINE_FILES = [ENGINE_RECIPE, 'compile-engine.ts']

const REPOSITORY = 'berth-openclaw'
const ENGINE_REPOSITORY = 'berth-openclaw-engine'
/**
 * Image labels for its Node version, and for the range of Node that its engine supports. Images of Berth 0.3 lack them.
 */
const NODE_LABEL = 'berth.node'
const RANGE_LABEL = 'berth.engine-node'
/** Time limit to read both: Node starts in a tenth of a second. */
const NODE_MS = 60_000
/** Prints both, inside the image. */
const NODE_PROGRAM = `let range
  try { range = require('/opt/openclaw/node_modules/openclaw/package.json').engines.node } catch {}
  console.log(JSON.stringify({ node: process.versions.node, range }))`
/** Docker's registry client has no timeout of its own. */
const REGISTRY_MS = 10_000

export interface EngineImage {
  version: string
  /** `berth-openclaw:<version>-<hash>`. */
  name: string
  id: string
  /** Size including the base, which images share. */
  bytes: number
  /** True if this Berth would build the same image. */
  current: boolean
  /** Why its engine cannot run on its Node; null if it can, as far as Berth knows. */
  obstacle: string | null
}

interface NamedImage {
  version: string
  /** The hash of the image's sources. */
  hash: string
  name: string
  id: string
  bytes: number
  labels: Labels
}

type Labels = Record<string, string> | null | undefined

export interface BuildOptions {
  version: string
  baseImage: string
  /** Folder of installed engine versions, from which images are built. */
  enginesDir: string
  /** Receives progress, line by line. */
  onLine?: ((line: string) => void) | undefined
  signal?: AbortSignal | undefined
}

/** The name of the image that agents of this version run. */
export async function engineImageName(version: string, baseImage: string): Promise<string> {
  requireEngineVersion(version)
  return `${REPOSITORY}:${version}-${(await hashes(baseImage)).agent}`
}

/**
 * Builds the image of a version unless it exists: installs the engine, then builds through Docker's own API. Concurrent
 * builds in processes that share the folder wait for each other.
 * @returns its name
 * @throws SandboxError `no_image` if the engine cannot run on the base's Node; the image then exists, and its labels
 *   show why.
 */
export async function buildEngineImage(docker: Docker, options: BuildOptions): Promise<string> {
  const { version, enginesDir, onLine, signal } = options
  const name = await engineImageName(version, options.baseImage)
  const known = await findObstacle(docker, name, version)
  if (known === null) return name
  // Rebuilds, because the base may have another Node by now.
  if (known)
    for (const one of await imageNames(version, options.baseImage))
      await docker.getImage(one).remove().catch(ignoreStatus(404, 409))
  await mkdir(enginesDir, { recursive: true })
  const engine = `${ENGINE_REPOSITORY}:${version}-${(await hashes(options.baseImage)).engine}`
  if (!(await hasImage(docker, engine))) await buildEngine(docker, engine, options)
  await withLock(enginesLock(enginesDir), options, async () => {
    if (await hasImage(docker, name)) return
    onLine?.(`Building ${name}`)
    const { node, range = '' } = await readNode(docker, engine)
    await buildImage(docker, {
      name,
      context: [AGENTD],
      dockerfile: 'agentd/Dockerfile',
      args: { ENGINE_IMAGE: engine, VERSION: version, NODE: node, NODE_RANGE: range },
      network: 'none',
      onLine,
      signal,
    })
  })
  onLine?.(`${name} is built`)
  const obstacle = await findObstacle(docker, name, version)
  if (obstacle) throw new SandboxError('no_image', obstacle)
  return name
}

/** The Node of an engine image, and the range of Node that its engine supports. */
async function readNode(docker: Docker, image: string): Promise<{ node: string; range?: string }> {
  const container = await docker.createContainer({
    Image: image,
    Entrypoint: ['node', '-e', NODE_PROGRAM],
    // A terminal's output has no frames.
    Tty: true,
    HostConfig: { NetworkMode: 'none', AutoRemove: true },
  })
  try {
    const output = (await container.attach({ stream: true, stdout: true })) as Duplex
    const late = setTimeout(
      () => output.destroy(new Error(`${image} does not report its Node version`)),
      NODE_MS,
    )
    await container.start()
    return JSON.parse(await text(output).finally(() => clearTimeout(late)))
  } finally {
    await container.remove({ force: true }).catch(ignoreStatus(404, 409))
  }
}

/** Why agents cannot run an image; null if they can, as far as Berth knows, and undefined if it does not exist. */
async function findObstacle(
  docker: Docker,
  name: string,
  version: string,
): Promise<string | null | undefined> {
  const found = await docker.getImage(name).inspect().catch(ignoreStatus(404))
  return found && obstacleIn(version, found.Config.Labels)
}

const obstacleIn = (version: string, labels: Labels): string | null =>
  nodeObstacle(version, { range: labels?.[RANGE_LABEL], node: labels?.[NODE_LABEL] })

async function buildEngine(docker: Docker, name: string, options: BuildOptions): Promise<void> {
  const { version, baseImage, enginesDir, onLine, signal } = options
  // Reports a missing base image before it downloads the engine.
  if (!(await canBuild(docker, baseImage, signal)))
    throw new SandboxError(
      'no_image',
      `Docker has no image ${baseImage} and cannot pull it: set BERTH_BASE_IMAGE to one that exists`,
    )
  const platform = await platformOf(docker)
  await withLock(enginesLock(enginesDir), options, async () => {
    if (await hasImage(docker, name)) return
    const folder = basename(await installLocked({ version, dir: enginesDir, platform, onLine, signal }))
    onLine?.(`Building ${name}`)
    await buildImage(docker, {
      name,
      context: [AGENTD, { dir: enginesDir, folder }],
      dockerfile: `agentd/${ENGINE_RECIPE}`,
      args: { BASE_IMAGE: baseImage, ENGINE: folder },
      onLine,
      signal,
    })
  })
}

/** The images that agents run in this Docker engine, of every Berth that uses it. */
export async function listEngineImages(docker: Docker, baseImage: string): Promise<EngineImage[]> {
  const { agent } = await hashes(baseImage)
  return (await namedImages(docker, REPOSITORY)).map(({ version, hash, labels, ...image }) => ({
    version,
    ...image,
    current: hash === agent,
    obstacle: obstacleIn(version, labels),
  }))
}

/**
 * The two images of a version, as this Berth would build them: the one that agents run, and the engine image below it.
 */
export async function imageNames(version: string, baseImage: string): Promise<string[]> {
  requireEngineVersion(version)
  const { agent, engine } = await hashes(baseImage)
  return [`${REPOSITORY}:${version}-${agent}`, `${ENGINE_REPOSITORY}:${version}-${engine}`]
}

/** Both kinds of images in this Docker engine, of every version and every Berth. */
export async function allImages(docker: Docker): Promise<NamedImage[]> {
  return [...(await namedImages(docker, REPOSITORY)), ...(await namedImages(docker, ENGINE_REPOSITORY))]
}

/** Removes the images of a version, except those that containers use. Does nothing if there are none. */
export async function removeEngineImages(docker: Docker, version: string): Promise<void> {
  requireEngineVersion(version)
  for (const image of await allImages(docker))
    if (image.version === version) await docker.getImage(image.name).remove().catch(ignoreStatus(404, 409))
}

/** True if images can be built at all: the base exists locally, or a registry that has it responds. */
export async function canBuild(docker: Docker, baseImage: string, signal?: AbortSignal): Promise<boolean> {
  if (await hasImage(docker, baseImage)) return true
  const inRegistry = docker
    .getImage(baseImage)
    .distribution()
    .then(() => true)
  const bound = sleep(REGISTRY_MS, false, { ref: false, ...(signal && { signal }) })
  return Promise.race([inRegistry.catch(() => false), bound])
}

/** An image in Docker's disk usage response. */
export interface ImageSize {
  RepoTags?: string[] | null
  Size: number
  SharedSize: number
}

/** Number and total bytes of engine images in a list. The base of a version's images counts once. */
export function imageBytes(images: ImageSize[]): { count: number; bytes: number } {
  const shared = new Map<string, number>()
  let [count, bytes] = [0, 0]
  for (const { RepoTags, Size, SharedSize } of images) {
    const [name] = [REPOSITORY, ENGINE_REPOSITORY].flatMap((repository) => readNames(RepoTags, repository))
    if (!name) continue
    count++
    bytes += Size - SharedSize
    shared.set(name.version, Math.max(shared.get(name.version) ?? 0, SharedSize))
  }
  return { count, bytes: [...shared.values()].reduce((sum, one) => sum + one, bytes) }
}

async function namedImages(docker: Docker, repository: string): Promise<NamedImage[]> {
  const images = await docker.listImages({ filters: { reference: [`${repository}:*`] } })
  return images.flatMap(({ Id: id, RepoTags, Size: bytes, Labels: labels }) =>
    readNames(RepoTags, repository).map((name) => ({ ...name, id, bytes, labels })),
  )
}

function readNames(names: string[] | null | undefined, repository: string) {
  return (names ?? []).flatMap((name) => {
    const [, version = '', hash = ''] = /:([\d.]+)-([\da-f]+)$/.exec(name) ?? []
    return name.startsWith(`${repository}:`) && version ? [{ version, hash, name }] : []
  })
}

/** The platform of Docker's machine, which may differ from this machine's. */
async function platformOf(docker: Docker): Promise<Platform> {
  const { Os: os, Arch: arch } = await docker.version()
  const cpu = { amd64: 'x64', arm64: 'arm64' }[arch]
  if (os !== 'linux' || !cpu)
    throw new SandboxError('internal', `the engine does not run on Docker for ${os}/${arch}`)
  // Base images are Debian, which has glibc.
  return { os, cpu, libc: 'glibc' }
}

let sources: Promise<Map<string, Buffer>> | undefined

/** Hashes of the sources of the two images, apart from the version. The files are read once. */
async function hashes(baseImage: string): Promise<{ engine: string; agent: string }> {
  sources ??= readSources(join(ROOT, 'agentd'))
  const files = await sources
  const engine = digest(baseImage, ...ENGINE_FILES.map((name) => files.get(name) ?? ''))
  return { engine, agent: digest(engine, ...[...files].flat()) }
}

async function readSources(dir: string): Promise<Map<string, Buffer>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
    .sort()
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(dir, name))] as const)),
  )
}

function digest(...parts: (string | Buffer)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length}\0`).update(part)
  return hash.digest('hex').slice(0, 12)
}
