/** What keeps an agent from coming up: for another try, or for good. */
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { SecretsUnreadable } from '../../src/agents/secrets/environment.ts'
import { UnfitFolder } from '../../src/agents/snapshots/fast-import.ts'
import { ContainerError, type Sandbox } from '../../src/containers/port.ts'
import { WayRefused } from '../../src/host/way.ts'
import { StorageError } from '../../src/storage/port.ts'

export type FailureCode =
  /** The gateway ended, or was not ready in time. */
  | 'gateway_failed'
  /** The engine refuses its state or its configuration: another start would end the same way. */
  | 'engine_refused'
  /** The engine version can neither be found nor made. */
  | 'no_image'
  | 'disk_full'
  | 'out_of_memory'
  | 'secrets_unreadable'
  /** What its workspace is made of is not on IPFS any more, or cannot be a workspace. */
  | 'content_lost'
  /** The container ended each time before the gateway was ready. */
  | 'sandbox_ended'
  /** Docker or the way to agents was away for as long as we try. */
  | 'outage'

/** The agent did not come up, for a reason that another try does not remove. */
export class BringUpFailed extends Error {
  override name = 'BringUpFailed'
  readonly code: FailureCode
  /** The last lines of the gateway's log. */
  readonly lastLines: string[]

  /** @param message one line, for the owner of the agent. */
  constructor(code: FailureCode, message: string, options: ErrorOptions & { lastLines?: string[] } = {}) {
    super(message, options)
    this.code = code
    this.lastLines = options.lastLines ?? []
  }
}

/** The sandbox ended under us: by itself, by hand, or because Docker was restarted. */
export class SandboxEnded extends Error {
  override name = 'SandboxEnded'

  constructor(sandbox: Sandbox | undefined) {
    super(sandbox ? `the agent's container ended with exit code ${sandbox.exitCode}` : 'it has no container')
  }
}

/** Whether an error is about a part that is away, and may be back later. */
export function isOutage(error: unknown): boolean {
  if (error instanceof ContainerError) return error.code === 'unreachable'
  if (error instanceof StorageError) return error.code === 'unavailable'
  return error instanceof AgentdError && (error.code === 'unreachable' || error.code === 'timeout')
}

/** Whether it is agentd itself that does not answer, rather than the way to it. */
export function isSilent(error: unknown): boolean {
  if (!(error instanceof AgentdError)) return false
  if (error.code === 'timeout') return true
  const { cause } = error.cause instanceof AgentdError ? error.cause : error
  return cause instanceof WayRefused && (cause.status === 502 || cause.status === 504)
}

const LOST = ['not_found', 'invalid_object', 'too_large']

/** The failure that an error stands for; undefined when another try may do better. */
export function failureOf(error: unknown): BringUpFailed | undefined {
  if (error instanceof BringUpFailed) return error
  if (error instanceof SecretsUnreadable)
    return new BringUpFailed('secrets_unreadable', error.message, { cause: error })
  if (error instanceof ContainerError && (error.code === 'no_image' || error.code === 'disk_full'))
    return new BringUpFailed(error.code, error.message, { cause: error })
  if (error instanceof UnfitFolder || (error instanceof StorageError && LOST.includes(error.code)))
    return new BringUpFailed('content_lost', error.message, { cause: error })
  if (error instanceof AgentdError && error.code === 'disk_full')
    return new BringUpFailed('disk_full', error.message, { cause: error })
  return undefined
}
