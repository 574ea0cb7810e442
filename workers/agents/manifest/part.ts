/** Input and result of applying one part of a manifest. */

import type { Agent } from '../../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../../src/agents/agentd-client.ts'
import { ApiError } from '../../../src/errors.ts'
import type { Run } from '../../../src/operations/handler.ts'
import type { AgentWorkerServices } from '../../services.ts'

/** The services and the agent for applying a part of a manifest. */
export interface Applying {
  services: AgentWorkerServices
  run: Run
  agent: Agent
  target: AgentdTarget
  /**
   * Whether skills of the hub are installed into the workspace's library. Not always allowed, because the agent itself
   * may push, too.
   */
  mayInstall: boolean
}

/** The result of applying a part; a thrown ApiError or AgentdError also counts as a problem. */
export interface PartResult {
  /** Problems, for the owner of the agent. */
  problems?: string[]
}

/**
 * The problem with one part, for the owner of the agent.
 * @throws the error if it ends the whole run: another worker has the agent, or the error is unexpected.
 */
export function problemOf(error: unknown): string {
  if (error instanceof AgentdError && error.code !== 'stale_epoch') return error.message
  if (!(error instanceof ApiError)) throw error
  const detail = error.headers['error-detail']
  return detail ? `${error.message}: ${detail}` : error.message
}
