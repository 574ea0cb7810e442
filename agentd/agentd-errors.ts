import { constants } from 'node:os'
import { AGENTD_ERRORS, type AgentdErrorCode } from './protocol.ts'

/** A failure that is reported to the client: `{"error": code, "message": message}` with the code's status. */
export class AgentdError extends Error {
  override name = 'AgentdError'
  readonly code: AgentdErrorCode

  constructor(code: AgentdErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  get status(): number {
    return AGENTD_ERRORS[this.code]
  }
}

/** True for a file system error with one of these codes: `isErrno(error, 'ENOENT')`. */
export function isErrno(error: unknown, ...codes: string[]): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false
  if (codes.includes(String(error.code))) return true
  // Node has no name for EDQUOT: its code is `Unknown system error -122`.
  return codes.includes('EDQUOT') && (error as NodeJS.ErrnoException).errno === -constants.errno.EDQUOT
}
