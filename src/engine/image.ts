/** Images of the engine: one for each version, and a new one whenever agentd or its Dockerfile change. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type Docker from 'dockerode'
import { EngineError } from './error.ts'
import { installEngine, type Platform, requireEngineVersion } from './install.ts'
import { withLock } from './lock.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const REPOSITORY = 'berth-openclaw'
const LABEL = 'berth.engine'
/** Labels of an image, as the Dockerfile sets them. */
const VERSION_LABEL = 'berth.engine-version'

/** 30 s measured, without the pull of a base image. */
const BUILD_MS = 15 * 60_000
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
  return `${REPOSITORY}:${version}-${await recipeHash(baseImage)}`
}

/**
 * Builds the image of a version, unless it is there: installs the engine, then builds by Docker's own API.
 * Builds of several processes of this machine wait for each other.
 * @returns its name
 * @throws EngineError
 */
export async function buildEngineImage(docker: Docker, options: BuildOptions): Promise<string> {
  const { version, baseImage, enginesDir, onLine, signal } = options
  const name = await engineImageName(version, baseImage)
  if (await hasImage(docker, name)) return name
  const platform = await platformOf(docker)
  const engine = await installEngine({ version, dir: enginesDir, platform, onLine, signal })
  await withLock(join(enginesDir, '.build.lock'), { onLine, signal }, async () => {
    if (await hasImage(docker, name)) return
    onLine?.(`Building ${name}`)
    await build(docker, name, { ...options, engine })
  })
  await removeReplaced(docker, version, name)
  onLine?.(`${name} is built`)
  return name
}

/** The images of the engine in this Docker, of every Berth that uses it. */
export async function listEngineImages(docker: Docker, baseImage: string): Promise<EngineImage[]> {
  const images = await docker.listImages({ filters: { label: [`${LABEL}=openclaw`] } })
  const hash = await recipeHash(baseImage)
  return images.flatMap(({ Id: id, RepoTags, Labels, Size: bytes }) => {
    const name = RepoTags?.find((tag) => tag.startsWith(`${REPOSITORY}:`))
    const version = Labels?.[VERSION_LABEL]
    return name && version ? [{ version, name, id, bytes, current: name.endsWith(`-${hash}`) }] : []
  })
}

/** Removes the images of a version, but for those that containers are made of; nothing happens when there are none. */
export async function removeEngineImages(docker: Docker, version: string): Promise<void> {
  requireEngineVersion(version)
  await removeReplaced(docker, version, undefined)
}

/** Whether images can be built at all: the base is there, or a registry that has it answers. */
export async function canBuild(docker: Docker, baseImage: string, signal?: AbortSignal): Promise<boolean> {
  if (await hasImage(docker, baseImage)) return true
  const bound = AbortSignal.timeout(REGISTRY_MS)
  const abortSignal = signal ? AbortSignal.any([signal, bound]) : bound
  try {
    await docker.getImage(baseImage).distribution({ abortSignal })
    return true
  } catch {
    signal?.throwIfAborted()
    return false
  }
}

/** Older images of a version, of another agentd. Docker keeps those that a container is made of. */
async function removeReplaced(docker: Docker, version: string, keep: string | undefined): Promise<void> {
  const filters = { label: [`${LABEL}=openclaw`, `${VERSION_LABEL}=${version}`] }
  for (const { Id, RepoTags } of await docker.listImages({ filters })) {
    if (keep && RepoTags?.includes(keep)) continue
    await docker
      .getImage(RepoTags?.[0] ?? Id)
      .remove()
      .catch(ignoreStatus(404, 409))
  }
}

async function build(
  docker: Docker,
  name: string,
  options: BuildOptions & { engine: string },
): Promise<void> {
  const { version, baseImage, enginesDir, engine, onLine, signal } = options
  const bound = AbortSignal.timeout(BUILD_MS)
  const abortSignal = signal ? AbortSignal.any([signal, bound]) : bound
  const folder = basename(engine)
  const context = packContext(enginesDir, folder)
  const said: string[] = []
  try {
    const answer = await docker.buildImage(context.stdout, {
      t: name,
      dockerfile: 'agentd/Dockerfile',
      buildargs: { BASE_IMAGE: baseImage, ENGINE: folder, VERSION: version },
      forcerm: true,
      version: await recommendedBuilder(docker),
      abortSignal,
    })
    await followBuild(docker, answer, abortSignal, (line) => {
      said.push(line)
      if (!/^( --->|Removing intermediate container)/.test(line)) onLine?.(line)
    })
  } catch (error) {
    signal?.throwIfAborted()
    if (bound.aborted)
      throw new EngineError('timeout', `Docker did not finish within ${BUILD_MS / 60_000} minutes`)
    throw explain(error as Error, baseImage, said)
  } finally {
    context.kill('SIGKILL')
  }
  // An answer that broke off looks like one that ended.
  if (!(await hasImage(docker, name)))
    throw new EngineError('failed', `Docker built no image: ${said.slice(-3).join(' ')}`)
}

/** Resolves when the build has ended; rejects with the engine's error. The library decodes what BuildKit says. */
function followBuild(
  docker: Docker,
  answer: NodeJS.ReadableStream,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<void> {
  const library = docker as Docker & {
    followProgress(
      answer: NodeJS.ReadableStream,
      onEnd: (error: Error | null) => void,
      onEvent: (event: { stream?: string; error?: string }) => void,
    ): void
  }
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    library.followProgress(
      answer,
      (error) => (error ? reject(error) : resolve()),
      ({ stream = '', error = '' }) => {
        for (const line of `${stream}${error}`.split('\n')) if (line.trim()) onLine(line)
      },
    )
  })
}

/** The engine and agentd as a tar, made while Docker reads it. */
function packContext(enginesDir: string, folder: string) {
  return spawn('tar', ['-cf', '-', '--exclude=*.test.ts', '-C', ROOT, 'agentd', '-C', enginesDir, folder], {
    stdio: ['ignore', 'pipe', 'ignore'],
    // Or macOS adds a file for the attributes of each.
    env: { ...process.env, COPYFILE_DISABLE: '1' },
  })
}

/** The builder that Docker would use itself: `2` is BuildKit, the default since version 23. */
async function recommendedBuilder(docker: Docker): Promise<'1' | '2'> {
  const answer = await new Promise<NodeJS.ReadableStream & { headers?: Record<string, string> }>(
    (resolve, reject) =>
      docker.modem.dial(
        { path: '/_ping', method: 'GET', isStream: true, statusCodes: { 200: true } },
        (error, data) => (error ? reject(error) : resolve(data as never)),
      ),
  )
  answer.resume()
  return answer.headers?.['builder-version'] === '2' ? '2' : '1'
}

function explain(error: Error, baseImage: string, said: string[]): EngineError {
  const text = `${error.message}\n${said.slice(-20).join('\n')}`
  const options = { cause: error }
  if (/no space left on device/i.test(text))
    return new EngineError(
      'disk_full',
      'no space is left on the disk of Docker: an engine image takes 1 GB',
      options,
    )
  if (
    /pull access denied|manifest unknown|not found: manifest|lookup .*: (no such host|server misbehaving)|registry/i.test(
      text,
    )
  )
    return new EngineError(
      'no_base_image',
      `Docker has no image ${baseImage} and cannot pull it: pull it, or set BERTH_BASE_IMAGE to one that is there`,
      options,
    )
  return new EngineError('failed', `the image cannot be built: ${said.at(-1) ?? error.message}`, options)
}

async function hasImage(docker: Docker, name: string): Promise<boolean> {
  const found = await docker.getImage(name).inspect().catch(ignoreStatus(404))
  return found !== undefined
}

/** For `catch`: answers of Docker with one of these statuses count as nothing. */
const ignoreStatus =
  (...statuses: number[]) =>
  (error: { statusCode?: number }): undefined => {
    if (!statuses.includes(error.statusCode ?? 0)) throw error
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

let agentdHash: Promise<string> | undefined

/** Names what an image is made from, beside the engine: the base's name, the Dockerfile, and agentd's sources. */
async function recipeHash(baseImage: string): Promise<string> {
  agentdHash ??= hashFolder(join(ROOT, 'agentd'))
  return createHash('sha256')
    .update(`${await agentdHash}\0${baseImage}`)
    .digest('hex')
    .slice(0, 12)
}

async function hashFolder(dir: string): Promise<string> {
  const names = (await readdir(dir)).filter((name) => !name.endsWith('.test.ts')).sort()
  const hash = createHash('sha256')
  for (const name of names) hash.update(`${name}\0`).update(await readFile(join(dir, name)))
  return hash.digest('hex')
}
