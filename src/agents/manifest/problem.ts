import { ApiError } from '../../errors.ts'
import { AgentdError } from '../agentd-client.ts'

/**
 * What went wrong, for the owner of the agent, where it is about this one part.
 * @throws the error, where it ends the whole run: another one has the agent, or nobody foresaw it.
 */
export function problemOf(error: unknown): string {
  if (error instanceof AgentdError && error.code !== 'stale_epoch') return error.message
  if (!(error instanceof ApiError)) throw error
  const detail = error.headers['error-detail']
  return detail ? `${error.message}: ${detail}` : error.message
}
