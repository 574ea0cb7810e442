/** The connection to a cluster: its client, a bound on every call, and what a refusal means. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CoreV1Api, KubeConfig, NetworkingV1Api } from '@kubernetes/client-node'
import { orAborted } from '../../lib/until-aborted.ts'
import { SandboxError, toSandboxError } from '../port.ts'

/** For what the API server answers from its store. */
const CALL_MS = 15_000
/** Where the API server throttles and does not say for how long. */
const THROTTLED_MS = 1000

/** The client of a cluster; `library` is the package, which is loaded with the first call. */
export interface Client {
  library: typeof import('@kubernetes/client-node')
  config: KubeConfig
  core: CoreV1Api
  networking: NetworkingV1Api
}

export interface Bounds {
  ms?: number
  signal?: AbortSignal | undefined
}

export class Cluster {
  readonly namespace: string
  readonly #kubeconfig: string | undefined
  #client: Promise<Client> | undefined

  /** @param kubeconfig its path; undefined: the account of the pod that this process runs in. */
  constructor(kubeconfig: string | undefined, namespace: string) {
    this.#kubeconfig = kubeconfig
    this.namespace = namespace
  }

  /**
   * Makes one call, and again while the API server throttles. No answer within `ms` is `unreachable`.
   * @param what names the call in messages.
   * @throws SandboxError
   */
  async call<T>(
    what: string,
    { ms = CALL_MS, signal }: Bounds,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const bound = AbortSignal.timeout(ms)
    const either = signal ? AbortSignal.any([signal, bound]) : bound
    try {
      const client = await this.#open()
      for (;;) {
        try {
          // The client's own calls hear no signal.
          return await orAborted(work(client, either), either)
        } catch (error) {
          if (statusOf(error) !== 429) throw error
          await sleep(throttledMs(error), undefined, { signal: either })
        }
      }
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (bound.aborted)
        throw new SandboxError('unreachable', `Kubernetes did not answer within ${ms / 1000} s: ${what}`, {
          cause: error,
        })
      throw clusterError(error, what)
    }
  }

  /** A kubeconfig is read again until it can be: the file may come later than this process. */
  #open(): Promise<Client> {
    this.#client ??= this.#load().catch((error) => {
      this.#client = undefined
      throw new SandboxError('unreachable', `the kubeconfig cannot be used: ${error.message}`, {
        cause: error,
      })
    })
    return this.#client
  }

  async #load(): Promise<Client> {
    // The library takes 90 MB, which only a worker with agents in Kubernetes pays.
    const library = await import('@kubernetes/client-node')
    const config = new library.KubeConfig()
    if (this.#kubeconfig) config.loadFromFile(this.#kubeconfig)
    else config.loadFromCluster()
    return {
      library,
      config,
      core: config.makeApiClient(library.CoreV1Api),
      networking: config.makeApiClient(library.NetworkingV1Api),
    }
  }
}

/** The HTTP status with which the API server refused; undefined for anything else than its refusal. */
export function statusOf(error: unknown): number | undefined {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  return [code, statusCode].find((status) => typeof status === 'number')
}

/** For a call whose refusal with one of these statuses means that nothing was to be done: resolves to undefined. */
export function ignoring(...statuses: number[]): (error: unknown) => undefined {
  return (error) => {
    if (!statuses.includes(statusOf(error) ?? 0)) throw error
  }
}

function throttledMs(error: unknown): number {
  const { headers } = error as { headers?: Record<string, string> }
  return Number(headers?.['retry-after'] ?? 0) * 1000 || THROTTLED_MS
}

/** The API server's own words: the client puts the whole answer around them. */
function reasonOf(error: Error): string {
  const { body } = error as { body?: unknown }
  try {
    const { message } = (typeof body === 'string' ? JSON.parse(body) : body) as { message?: unknown }
    if (typeof message === 'string') return message
  } catch {
    // No answer of the API server, but of something before it.
  }
  return error.message.slice(0, 500)
}

function clusterError(error: unknown, what: string): unknown {
  if (error instanceof SandboxError || !(error instanceof Error)) return toSandboxError(error)
  const status = statusOf(error)
  const text = `${what}: ${reasonOf(error)}`
  const options = { cause: error }
  if (status === 404) return new SandboxError('not_found', text, options)
  if (status === 403 && /exceeded quota/.test(text))
    return new SandboxError('no_room', `the quota of the cluster is used up: ${text}`, options)
  // A token that is being renewed is refused for a moment.
  if (status === undefined || status === 401 || status >= 500)
    return new SandboxError('unreachable', `Kubernetes cannot be used: ${text}`, options)
  return new SandboxError('internal', `Kubernetes refuses: ${text}`, options)
}
