/** The connection to a cluster: its client, a time limit for every call, and the meaning of refusals. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CoreV1Api, KubeConfig, NetworkingV1Api } from '@kubernetes/client-node'
import { SandboxError } from '../../errors.ts'
import { orAborted, withDeadline } from '../../lib/signals.ts'
import { toSandboxError } from '../port.ts'

/** For calls that the API server answers from its store. */
const CALL_MS = 15_000
/** Used if the API server throttles without a retry time. */
const THROTTLED_MS = 1000

/** The client of a cluster; `library` is the package, loaded by the first call. */
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

  /** @param kubeconfig its path; undefined for the service account of this process's pod. */
  constructor(kubeconfig: string | undefined, namespace: string) {
    this.#kubeconfig = kubeconfig
    this.namespace = namespace
  }

  /**
   * Makes one call, and repeats it while the API server throttles. A call that takes longer than `ms` fails with
   * `unreachable`.
   * @param what the call's name in messages.
   * @throws SandboxError
   */
  async call<T>(
    what: string,
    { ms = CALL_MS, signal }: Bounds,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = () =>
      new SandboxError('unreachable', `Kubernetes did not answer within ${ms / 1000} s: ${what}`)
    return withDeadline({ ms, signal, late }, async (either) => {
      const client = await this.#open()
      for (;;) {
        try {
          // The client's own calls ignore the signal.
          return await orAborted(work(client, either), either)
        } catch (error) {
          if (statusOf(error) !== 429) throw clusterError(error, what)
          await sleep(throttledMs(error), undefined, { signal: either })
        }
      }
    })
  }

  /** Retries an unreadable kubeconfig at the next call: the file may appear after this process starts. */
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
    // The library takes 90 MB, so only a worker with agents in Kubernetes loads it.
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

/** The HTTP status with which the API server refused; undefined for any other error. */
export function statusOf(error: unknown): number | undefined {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  return [code, statusCode].find((status) => typeof status === 'number')
}

/** For calls where a refusal with one of these statuses means that there is nothing to do: resolves to undefined. */
export function ignoring(...statuses: number[]): (error: unknown) => undefined {
  return (error) => {
    if (!statuses.includes(statusOf(error) ?? 0)) throw error
  }
}

function throttledMs(error: unknown): number {
  const { headers } = error as { headers?: Record<string, string> }
  return Number(headers?.['retry-after'] ?? 0) * 1000 || THROTTLED_MS
}

/** The API server's own message, which the client wraps in the whole response. */
function reasonOf(error: Error): string {
  const { body } = error as { body?: unknown }
  try {
    const { message } = (typeof body === 'string' ? JSON.parse(body) : body) as { message?: unknown }
    if (typeof message === 'string') return message
  } catch {
    // Not a response of the API server, but of something in front of it.
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
  // 401 is temporary: a token that is being renewed is refused for a moment.
  if (status === undefined || status === 401 || status >= 500)
    return new SandboxError('unreachable', `Kubernetes cannot be used: ${text}`, options)
  return new SandboxError('internal', `Kubernetes refused: ${text}`, options)
}
