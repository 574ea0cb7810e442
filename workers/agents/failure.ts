/** Errors that keep an agent from starting, temporarily or for good. */

import { TunnelError } from '../../src/agent-proxy/tunnel-client.ts'
import { type AgentdClient, AgentdError } from '../../src/agents/agentd-client.ts'
import type { Config } from '../../src/config.ts'
import { PartError, SandboxError } from '../../src/errors.ts'
import { OperationFailed, RetryLater, type Run } from '../../src/operations/handler.ts'
import type { Sandbox } from '../../src/sandboxes/port.ts'
import { StorageError } from '../../src/storage/port.ts'
import { UnfitFolder } from './snapshots/fast-import.ts'

export type FailureCode =
  /** The gateway ended, or was not ready in time. */
  | 'gateway_failed'
  /** The engine refuses its state or its configuration; another start would end the same way. */
  | 'engine_refused'
  /** The engine version does not exist and cannot be created. */
  | 'no_image'
  | 'disk_full'
  /** The agent could read Berth's keys, which the operator has not accepted. */
  | 'not_walled'
  /** The machine does not meet a need of the engine. */
  | 'unmet_need'
  | 'out_of_memory'
  | 'secrets_unreadable'
  /** The content of its workspace is no longer on IPFS, or cannot be a workspace. */
  | 'content_lost'
  /** The agent that it is a fork of could not be saved, or was deleted before. */
  | 'parent_not_saved'
  /** The container ended each time before the gateway was ready. */
  | 'sandbox_ended'
  /** Docker or the agent proxy was away during all attempts. */
  | 'outage'

/** The agent did not start, for a reason that another attempt does not fix. */
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

/** The sandbox ended or broke during the operation: by itself, by hand, or because Docker restarted. */
export class SandboxEnded extends Error {
  override name = 'SandboxEnded'

  constructor(sandbox: Sandbox | undefined, limits: MemoryLimit) {
    super(describeEnd(sandbox, limits))
  }
}

export type MemoryLimit = Pick<Config, 'BERTH_AGENT_LIMITS'>

/** Why an agent's sandbox cannot be used, in a sentence for the agent's owner. */
export function describeEnd(sandbox: Sandbox | undefined, { BERTH_AGENT_LIMITS }: MemoryLimit): string {
  if (!sandbox) return 'it has no container'
  if (sandbox.fault) return sandbox.fault
  if (sandbox.oomKilled)
    return `out of memory: the kernel killed its container, the agent's limit is ${BERTH_AGENT_LIMITS.memoryMb} MiB`
  if (sandbox.state === 'running') return 'its container has no address'
  return `the agent's container ended: ${sandbox.cause ?? `exit code ${sandbox.exitCode}`}`
}

/** The operation fails because of a part, for the reason that the part gives. */
export function failedBy(
  error: PartError,
  { code = error.code, publicMessage }: { code?: string; publicMessage?: string } = {},
): OperationFailed {
  const { message } = error
  const shown = publicMessage !== undefined && { publicMessage }
  return new OperationFailed(code, message, { ...shown, result: { detail: message }, cause: error })
}

/** True if agentd itself does not respond, rather than the agent proxy, which may hang, too. */
export async function isSilent(error: unknown, agentd: AgentdClient): Promise<boolean> {
  if (!(error instanceof AgentdError)) return false
  if (error.code === 'timeout') return agentd.isProxyThere()
  const { cause } = error.cause instanceof AgentdError ? error.cause : error
  return cause instanceof TunnelError && (cause.status === 502 || cause.status === 504)
}

const FINAL = ['no_image', 'disk_full', 'not_walled', 'unmet_need', 'out_of_memory'] as const
const isFinal = (code: string): code is (typeof FINAL)[number] => (FINAL as readonly string[]).includes(code)

const LOST = ['not_found', 'invalid_object', 'too_large']

/** The final failure for an error; undefined if another attempt may succeed. */
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
 * A sandbox may end because Docker restarts, but one that ends at each attempt does so by itself. Attempts that met an
 * outage do not count.
 */
const MAX_ENDS = 5

/** How an attempt to start an agent ends: another attempt, or a failure; undefined for an unexpected error. */
export function explainStart(error: unknown, { operation }: Run): OperationFailed | undefined {
  const hasEnded = error instanceof SandboxEnded
  if (hasEnded && operation.errorCount + 1 >= MAX_ENDS)
    return new StartFailed('sandbox_ended', error.message, { cause: error })
  if (hasEnded || (error instanceof PartError && error.isAway)) {
    const { message } = error
    // If it failed as an outage after a time, the reconciler would restart it again and again, and never give up.
    return new RetryLater('outage', message, {
      result: { detail: message },
      cause: error,
      unbounded: hasEnded,
    })
  }
  return failureOf(error)
}
