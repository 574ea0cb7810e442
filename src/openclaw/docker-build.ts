/** Builds an image through Docker's own API, with or without BuildKit. */
import { spawn } from 'node:child_process'
import type Docker from 'dockerode'
import { SandboxError } from '../errors.ts'
import { withDeadline } from '../lib/signals.ts'

/** 20 to 40 s measured for an engine, without pulling a base image. */
const BUILD_MS = 15 * 60_000
/** Lines of the classic builder about its own steps. */
const NOISE = /^( --->|Removing intermediate container)/

export interface BuildRequest {
  /** The image's name and tag. */
  name: string
  /** The build context: folders, packed next to each other. */
  context: { dir: string; folder: string }[]
  /** Path of the Dockerfile in the context. */
  dockerfile: string
  args: Record<string, string>
  /** `none` if no step needs the network. */
  network?: 'none'
  onLine?: ((line: string) => void) | undefined
  signal?: AbortSignal | undefined
}

/** @throws SandboxError */
export async function buildImage(docker: Docker, request: BuildRequest): Promise<void> {
  const { name, dockerfile, args, onLine, signal } = request
  const late = () =>
    new SandboxError('no_image', `Docker did not build ${name} within ${BUILD_MS / 60_000} minutes`)
  const unpacked = new AbortController()
  const context = pack(request.context)
  // If tar is missing or no process can be started. An unhandled error would end this process.
  context.once('error', (error) => unpacked.abort(error))
  await withDeadline({ ms: BUILD_MS, signal, late }, async (either) => {
    const abortSignal = AbortSignal.any([either, unpacked.signal])
    const answer = await docker.buildImage(context.stdout, {
      t: name,
      dockerfile,
      buildargs: args,
      forcerm: true,
      ...(request.network && { networkmode: request.network }),
      version: await recommendedBuilder(docker),
      abortSignal,
    })
    await followBuild(docker, answer, abortSignal, (line) => {
      if (!NOISE.test(line)) onLine?.(line)
    })
  })
    .catch((error) => {
      if (signal?.aborted || error instanceof SandboxError) throw error
      throw explain(name, unpacked.signal.aborted ? unpacked.signal.reason : error)
    })
    .finally(() => context.kill('SIGKILL'))
  // A response that broke off looks like a completed one.
  if (!(await hasImage(docker, name)))
    throw new SandboxError('internal', `Docker broke off before ${name} was built`)
}

export async function hasImage(docker: Docker, name: string): Promise<boolean> {
  const found = await docker.getImage(name).inspect().catch(ignoreStatus(404))
  return found !== undefined
}

/** For `catch`: ignores errors of Docker with one of these statuses. */
export const ignoreStatus =
  (...statuses: number[]) =>
  (error: { statusCode?: number }): undefined => {
    if (!statuses.includes(error.statusCode ?? 0)) throw error
  }

/** A tar, created while Docker reads it. Leaves out tests, and the code of engines compiled for this machine. */
function pack(folders: BuildRequest['context']) {
  const what = folders.flatMap(({ dir, folder }) => ['-C', dir, folder])
  const without = ['*.test.ts', ...folders.map(({ folder }) => `${folder}/compile-cache`)]
  return spawn('tar', ['-cf', '-', ...without.map((pattern) => `--exclude=${pattern}`), ...what], {
    stdio: ['ignore', 'pipe', 'ignore'],
    // Otherwise macOS adds a file for the attributes of each.
    env: { ...process.env, COPYFILE_DISABLE: '1' },
  })
}

/** The builder that Docker itself would use: `2` is BuildKit, the default since version 23. */
async function recommendedBuilder(docker: Docker): Promise<'1' | '2'> {
  type PingResponse = NodeJS.ReadableStream & { headers?: Record<string, string> }
  const answer = await new Promise<PingResponse>((resolve, reject) => {
    const ping = { path: '/_ping', method: 'GET', isStream: true, statusCodes: { 200: true } }
    docker.modem.dial(ping, (error, data) => (error ? reject(error) : resolve(data as PingResponse)))
  })
  answer.resume()
  return answer.headers?.['builder-version'] === '2' ? '2' : '1'
}

/**
 * Resolves when the build has ended, rejects with Docker's error. The library decodes BuildKit's events, but reports a
 * failed build as a finished one.
 */
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
      ({ stream = '', error }) => {
        for (const line of stream.split('\n')) if (line.trim()) onLine(line)
        if (error) reject(new Error(error))
      },
    )
  })
}

function explain(name: string, error: Error): SandboxError {
  const options = { cause: error }
  if (/no space left on device/i.test(error.message))
    return new SandboxError(
      'disk_full',
      'no space is left on the disk of Docker: an engine image takes 1 GB while it is built',
      options,
    )
  return new SandboxError('internal', `${name} cannot be built: ${error.message}`, options)
}
