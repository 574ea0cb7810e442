/** Errors that keep an agent from starting: for another attempt, or for good. */

import { TunnelError } from '../../src/agent-proxy/tunnel-client.ts'
import { type AgentdClient, AgentdError } from '../../src/agents/agentd-client.ts'
import type { Config } from '../../src/config.ts'
import { OperationFailed, RetryLater, type Run } from '../../src/operations/handler.ts'
import { type Sandbox, SandboxError } from '../../src/sandboxes/port.ts'
import { StorageError } from '../../src/storage/port.ts'
import { UnfitFolder } from './fast-import.ts'

export type FailureCode =
  /** The gateway ended, or was not ready in time. */
  | 'gateway_failed'
  /** The engine refuses its state or its configuration: another start would end the same way. */
  | 'engine_refused'
  /** The engine version can neither be found nor made. */
  | 'no_image'
  | 'disk_full'
  /** It could read Berth's keys, which the operator has not accepted. */
  | 'not_walled'
  /** The engine does not get what it needs of the machine. */
  | 'unmet_need'
  | 'out_of_memory'
  | 'secrets_unreadable'
  /** The content of its workspace is not on IPFS any more, or cannot be a workspace. */
  | 'content_lost'
  /** The container ended each time before the gateway was ready. */
  | 'sandbox_ended'
  /** Docker or the agent proxy was away for as long as we try. */
  | 'outage'

/** The agent did not start, for a reason that another attempt does not remove. */
export class StartFailed extends OperationFailed {
  override name = 'StartFailed'
  declare readonly code: FailureCode

  /**
   * @param message one line, for the owner of the agent.
   * @param options.lastLines of the gateway's log.
   */
  constructor(code: FailureCode, message: string, options: ErrorOptions & { lastLines?: string[] } = {}) {
    super(code, message, { ...options, result: { detail: message } })
  }
}

/** The sandbox ended or broke under us: by itself, by hand, or because Docker was restarted. */
export class SandboxEnded extends Error {
  override name = 'SandboxEnded'

  constructor(sandbox: Sandbox | undefined, limits: MemoryLimit) {
    super(describeEnd(sandbox, limits))
  }
}

export type MemoryLimit = Pick<Config, 'BERTH_AGENT_MEMORY_MB'>

/** Why an agent's sandbox cannot be used, in a sentence for the agent's owner. */
export function describeEnd(sandbox: Sandbox | undefined, { BERTH_AGENT_MEMORY_MB }: MemoryLimit): string {
  if (!sandbox) return 'it has no container'
  if (sandbox.fault) return sandbox.fault
  if (sandbox.oomKilled)
    return `out of memory: the kernel killed its container, the agent's limit is ${BERTH_AGENT_MEMORY_MB} MiB`
  if (sandbox.state === 'running') return 'its container has no address'
  return `the agent's container ended: ${sandbox.cause ?? `exit code ${sandbox.exitCode}`}`
}

/** True for an error about a part that is away, and may be back later. */
export function isOutage(error: unknown): boolean {
  // Room in a cluster comes back as a part does: by itself, or by its operator.
  if (error instanceof SandboxError) return error.code === 'unreachable' || error.code === 'no_room'
  if (error instanceof StorageError) return error.code === 'unavailable' || error.code === 'no_space'
  return error instanceof AgentdError && (error.code === 'unreachable' || error.code === 'timeout')
}

/** True where agentd itself does not answer, rather than the agent proxy, which may hang as well. */
export async function isSilent(error: unknown, agentd: AgentdClient): Promise<boolean> {
  if (!(error instanceof AgentdError)) return false
  if (error.code === 'timeout') return agentd.isProxyThere()
  const { cause } = error.cause instanceof AgentdError ? error.cause : error
  return cause instanceof TunnelError && (cause.status === 502 || cause.status === 504)
}

const FINAL = ['no_image', 'disk_full', 'not_walled', 'unmet_need', 'out_of_memory'] as const
const isFinal = (code: string): code is (typeof FINAL)[number] => (FINAL as readonly string[]).includes(code)

const LOST = ['not_found', 'invalid_object', 'too_large']

/** The failure that an error stands for; undefined when another attempt may do better. */
export function failureOf(error: unknown): StartFailed | undefined {
  if (error instanceof StartFailed) return error
  if (error instanceof SandboxError && isFinal(error.code))
    return new StartFailed(error.code, error.message, { cause: error })
  if (error instanceof UnfitFolder || (error instanceof StorageError && LOST.includes(error.code)))
    return new StartFailed('content_lost', error.message, { cause: error })
  if (error instanceof AgentdError && error.code === 'disk_full')
    return new StartFailed('disk_full', error.message, { cause: error })
  return undefined
}

/**
 * A sandbox may end because Docker is restarted; one that ends at each attempt does so by itself. Attempts that met an outage
 * are not counted.
 */
const MAX_ENDS = 5

/** The end of an attempt for an agent that is started: another attempt, or a failure; undefined for an unexpected error. */
export function explainStart(error: unknown, { operation }: Run): OperationFailed | undefined {
  const hasEnded = error instanceof SandboxEnded
  if (hasEnded && operation.errorCount + 1 >= MAX_ENDS)
    return new StartFailed('sandbox_ended', error.message, { cause: error })
  if (hasEnded || isOutage(error)) {
    const { message } = error as Error
    // Failed as an outage after a time, it would be started again by the reconciler, and never be given up.
    return new RetryLater('outage', message, {
      result: { detail: message },
      cause: error,
      unbounded: hasEnded,
    })
  }
  return failureOf(error)
}
