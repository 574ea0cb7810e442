/**
 * Images of the engine. Two for each version: the engine on its base, which takes a while, and agentd on top, built
 * anew within seconds whenever agentd changes. The hashes in their names say what they were made from.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type Docker from 'dockerode'
import { buildImage, hasImage, ignoreStatus } from './docker-build.ts'
import { EngineError } from './error.ts'
import { installEngine, type Platform, requireEngineVersion } from './install.ts'
import { withLock } from './lock.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const AGENTD = { dir: ROOT, folder: 'agentd' }
const ENGINE_RECIPE = 'engine.Dockerfile'

const REPOSITORY = 'berth-openclaw'
const ENGINE_REPOSITORY = 'berth-openclaw-engine'
/** Docker's registry client has no bound of its own. */
const REGISTRY_MS = 10_000

export interface EngineImage {
  version: string
  /** `berth-openclaw:<version>-<hash>`. */
  name: string
  id: string
  /** With its base, which images share. */
  bytes: number
  /** Whether it is what this Berth would build. */
  current: boolean
}

export interface BuildOptions {
  version: string
  baseImage: string
  /** Folder of installed engine versions: images are made from them. */
  enginesDir: string
  /** Gets what is done, line by line. */
  onLine?: ((line: string) => void) | undefined
  signal?: AbortSignal | undefined
}

/** The name of the image that agents of this version run. */
export async function engineImageName(version: string, baseImage: string): Promise<string> {
  requireEngineVersion(version)
  return `${REPOSITORY}:${version}-${(await hashes(baseImage)).agent}`
}

/**
 * Builds the image of a version, unless it is there: installs the engine, then builds by Docker's own API.
 * Builds of several processes of this machine wait for each other.
 * @returns its name
 * @throws EngineError
 */
export async function buildEngineImage(docker: Docker, options: BuildOptions): Promise<string> {
  const { version, enginesDir, onLine, signal } = options
  const name = await engineImageName(version, options.baseImage)
  if (await hasImage(docker, name)) return name
  const engine = `${ENGINE_REPOSITORY}:${version}-${(await hashes(options.baseImage)).engine}`
  if (!(await hasImage(docker, engine))) await buildEngine(docker, engine, options)
  await withLock(join(enginesDir, '.build.lock'), { onLine, signal }, async () => {
    if (await hasImage(docker, name)) return
    onLine?.(`Building ${name}`)
    await buildImage(docker, {
      name,
      context: [AGENTD],
      dockerfile: 'agentd/Dockerfile',
      args: { ENGINE_IMAGE: engine, VERSION: version },
      network: 'none',
      onLine,
      signal,
    })
  })
  await removeImages(docker, version, [name, engine])
  onLine?.(`${name} is built`)
  return name
}

async function buildEngine(docker: Docker, name: string, options: BuildOptions): Promise<void> {
  const { version, baseImage, enginesDir, onLine, signal } = options
  // Before the engine is downloaded for nothing.
  if (!(await canBuild(docker, baseImage, signal)))
    throw new EngineError(
      'no_base_image',
      `Docker has no image ${baseImage} and cannot pull it: set BERTH_BASE_IMAGE to one that is there`,
    )
  const platform = await platformOf(docker)
  const folder = basename(await installEngine({ version, dir: enginesDir, platform, onLine, signal }))
  await withLock(join(enginesDir, '.build.lock'), { onLine, signal }, async () => {
    if (await hasImage(docker, name)) return
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

/** The images that agents run in this Docker, of every Berth that uses it. */
export async function listEngineImages(docker: Docker, baseImage: string): Promise<EngineImage[]> {
  const { agent } = await hashes(baseImage)
  return (await namedImages(docker, REPOSITORY)).map(({ version, hash, ...image }) => ({
    version,
    ...image,
    current: hash === agent,
  }))
}

/** Removes the images of a version, but for those that containers are made of; nothing happens when there are none. */
export async function removeEngineImages(docker: Docker, version: string): Promise<void> {
  requireEngineVersion(version)
  await removeImages(docker, version, [])
}

/** Whether images can be built at all: the base is there, or a registry that has it answers. */
export async function canBuild(docker: Docker, baseImage: string, signal?: AbortSignal): Promise<boolean> {
  if (await hasImage(docker, baseImage)) return true
  const inRegistry = docker
    .getImage(baseImage)
    .distribution()
    .then(() => true)
  const bound = sleep(REGISTRY_MS, false, { ref: false, ...(signal && { signal }) })
  return Promise.race([inRegistry.catch(() => false), bound])
}

/** Docker keeps an image that a container is made of, whoever wants it gone. */
async function removeImages(docker: Docker, version: string, keep: string[]): Promise<void> {
  for (const repository of [REPOSITORY, ENGINE_REPOSITORY])
    for (const image of await namedImages(docker, repository)) {
      if (image.version !== version || keep.includes(image.name)) continue
      await docker.getImage(image.name).remove().catch(ignoreStatus(404, 409))
    }
}

async function namedImages(docker: Docker, repository: string) {
  const images = await docker.listImages({ filters: { reference: [`${repository}:*`] } })
  return images.flatMap(({ Id: id, RepoTags, Size: bytes }) =>
    (RepoTags ?? []).flatMap((name) => {
      const [, version = '', hash = ''] = /:([\d.]+)-([\da-f]+)$/.exec(name) ?? []
      return name.startsWith(`${repository}:`) && version ? [{ version, hash, name, id, bytes }] : []
    }),
  )
}

/** What Docker's machine runs: not always what this one does. */
async function platformOf(docker: Docker): Promise<Platform> {
  const { Os: os, Arch: arch } = await docker.version()
  const cpu = { amd64: 'x64', arm64: 'arm64' }[arch]
  if (os !== 'linux' || !cpu)
    throw new EngineError('failed', `the engine does not run on Docker for ${os}/${arch}`)
  // Of Debian, which base images are.
  return { os, cpu, libc: 'glibc' }
}

let sources: Promise<Map<string, Buffer>> | undefined

/** Of what the two images are made from, beside the version; the files are read once. */
async function hashes(baseImage: string): Promise<{ engine: string; agent: string }> {
  sources ??= readSources(join(ROOT, 'agentd'))
  const files = await sources
  const engine = digest(baseImage, files.get(ENGINE_RECIPE) ?? '')
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
