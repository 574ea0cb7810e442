/** The connection to a Docker engine: negotiates the API version, and limits the time of every call. */
import type Docker from 'dockerode'
import { SandboxError } from '../../errors.ts'
import { orAborted, withDeadline } from '../../lib/signals.ts'
import { toSandboxError } from '../port.ts'

/** The facts about a Docker daemon that Berth depends on. */
export interface EngineFacts {
  /** Negotiated version of the API, such as `1.41`. */
  apiVersion: string
  /** True if gVisor's runtime is installed. */
  runsc: boolean
}

/** The newest API that this driver was written for; newer engines are asked to use it. */
const NEWEST_API = '1.47'
/** Docker 20.10. */
const OLDEST_API = '1.41'
/** For calls that the engine answers from memory. */
const QUICK_MS = 10_000
/** For calls that involve the disk and the kernel: measured below one second, many seconds on a busy machine. */
export const SLOW_MS = 60_000
/** Idle connections are closed after this time, because not every call of the library can be aborted. */
const IDLE_MS = 10 * 60_000

export class DockerEngine {
  readonly #address: Docker.DockerOptions
  #connection: Promise<{ docker: Docker; facts: EngineFacts }> | undefined

  /** @param host DOCKER_HOST; undefined: the usual socket. */
  constructor(host: string | undefined) {
    this.#address = host === undefined ? {} : addressOf(host)
  }

  /**
   * Makes one call. Errors become SandboxErrors; a call that takes longer than `ms` fails with `unreachable`.
   * @param what the call's name in messages.
   */
  async call<T>(
    what: string,
    { ms = QUICK_MS, signal }: { ms?: number; signal?: AbortSignal | undefined },
    work: (docker: Docker, abortSignal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#bounded(what, ms, signal, async (abortSignal) => {
      const { docker } = await this.#connect()
      return work(docker, abortSignal)
    })
  }

  /** Reads the facts about the daemon. @throws SandboxError */
  async facts(): Promise<EngineFacts> {
    return (await this.#connect()).facts
  }

  /** Negotiates with the engine once, and again after it was away: its version may have changed. */
  #connect(): Promise<{ docker: Docker; facts: EngineFacts }> {
    this.#connection ??= this.#negotiate().catch((error) => {
      this.#connection = undefined
      throw error
    })
    return this.#connection
  }

  async #negotiate(): Promise<{ docker: Docker; facts: EngineFacts }> {
    // Imported on demand: it takes 12 MB, and is never used if agents are processes.
    const { default: Docker } = await import('dockerode')
    const asking = new Docker({ ...this.#address, timeout: QUICK_MS })
    return this.#bounded('version', QUICK_MS, undefined, async () => {
      const { ApiVersion, MinAPIVersion } = await asking.version()
      const apiVersion = negotiate(ApiVersion, MinAPIVersion)
      const { Runtimes = {} } = (await asking.info()) as { Runtimes?: Record<string, unknown> }
      const facts = { apiVersion, runsc: 'runsc' in Runtimes }
      const docker = new Docker({ ...this.#address, timeout: IDLE_MS, version: `v${apiVersion}` })
      return { docker, facts }
    })
  }

  async #bounded<T>(
    what: string,
    ms: number,
    signal: AbortSignal | undefined,
    work: (abortSignal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = () => new SandboxError('unreachable', `Docker did not answer within ${ms / 1000} s: ${what}`)
    return withDeadline({ ms, signal, late }, async (either) => {
      try {
        // Some calls of the library ignore the signal at times.
        return await orAborted(work(either), either)
      } catch (error) {
        // The daemon may come back in another version.
        if (!signal?.aborted && statusOf(error) === undefined) this.#connection = undefined
        throw dockerError(error, what)
      }
    })
  }
}

/**
 * The API version to use: the engine's newest, or the newest that this driver knows if the engine still supports it.
 * @throws SandboxError if the engine is older than Docker 20.10.
 */
export function negotiate(newest: string, oldest = newest): string {
  if (isOlder(newest, OLDEST_API))
    throw new SandboxError('internal', `Docker supports API ${newest} at most; 20.10 or newer is needed`)
  if (isOlder(newest, NEWEST_API)) return newest
  return isOlder(NEWEST_API, oldest) ? oldest : NEWEST_API
}

const isOlder = (a: string, b: string): boolean => a.localeCompare(b, 'en', { numeric: true }) < 0

/** The library would read DOCKER_HOST itself, so unused options are set to undefined. */
function addressOf(host: string): Docker.DockerOptions {
  const { protocol, hostname, port, pathname } = new URL(host)
  if (protocol === 'unix:') return { socketPath: pathname, host: undefined }
  const address = { host: hostname, port: port || (protocol === 'https:' ? '2376' : '2375') }
  // For `tcp:` the usual DOCKER_TLS_VERIFY and DOCKER_CERT_PATH decide, as in Docker's own programs.
  return protocol === 'tcp:' ? address : { ...address, protocol: protocol === 'https:' ? 'https' : 'http' }
}

/** The HTTP status with which the engine refused; undefined for any other error. */
export function statusOf(error: unknown): number | undefined {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined
  return typeof status === 'number' ? status : undefined
}

/** The engine's own message, without the status and blank that dockerode adds. */
export function reasonOf(error: unknown): string {
  const { json, message } = error as { json?: { message?: unknown }; message: string }
  return typeof json?.message === 'string' ? json.message : message
}

/**
 * Classifies a failed call: a refusal by its status and message; without a status, the engine did not respond.
 * @param what the call, for the message.
 */
function dockerError(error: unknown, what: string): unknown {
  if (error instanceof SandboxError || !(error instanceof Error)) return error
  const status = statusOf(error)
  const text = `${what}: ${reasonOf(error).trim()}`
  const options = { cause: error }
  // Connection errors have a code: ECONNREFUSED, EACCES, ECONNRESET, …
  if (status === undefined && 'code' in error)
    return new SandboxError('unreachable', `Docker cannot be reached: ${text}`, options)
  if (status === undefined) return toSandboxError(error)
  if (status === 404) return new SandboxError('not_found', text, options)
  if (/no space left on device|disk quota exceeded/i.test(text))
    return new SandboxError('disk_full', text, options)
  return new SandboxError('internal', text, options)
}
