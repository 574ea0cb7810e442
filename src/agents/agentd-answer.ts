/** Reads complete, bounded responses of agentd, and turns error responses into errors. */
import type { IncomingMessage } from 'node:http'
import { PartError } from '../errors.ts'
import { readWhole, storableText } from '../lib/read.ts'

const MAX_ERROR_BYTES = 65_536
const ERROR_MS = 5000

interface AgentdErrorOptions extends ErrorOptions {
  /** The status of agentd's response; 0 if there was none. */
  status?: number | undefined
  /** True if the response was late and the request may be repeated. */
  mayRepeat?: boolean
}

/**
 * An agent's agentd. The code is `unreachable` or `timeout` without a response, `bad_answer` for an unexpected one, and
 * otherwise agentd's own.
 */
export class AgentdError extends PartError {
  override name = 'AgentdError'
  readonly status: number
  readonly mayRepeat: boolean

  constructor(code: string, message: string, options: AgentdErrorOptions = {}) {
    super(code, message, options)
    this.status = options.status ?? 0
    this.mayRepeat = options.mayRepeat ?? false
  }

  override get isAway(): boolean {
    return this.code === 'unreachable' || this.code === 'timeout'
  }
}

/** Reads a complete response. @throws AgentdError `too_large` or `bad_answer`. */
export async function readBounded(
  response: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const tooLarge = () => new AgentdError('too_large', `agentd sent more than ${maxBytes} bytes`)
  const abort = () => response.destroy(new Error('aborted'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await readWhole(response, maxBytes, tooLarge)
  } catch (error) {
    if (error instanceof AgentdError) throw error
    const message = `agentd's response broke off: ${(error as Error).message}`
    throw new AgentdError('bad_answer', message, { cause: error })
  } finally {
    signal.removeEventListener('abort', abort)
    response.destroy()
  }
}

/** The error for a failure response. Never rejects. */
export async function readError(response: IncomingMessage): Promise<AgentdError> {
  const { statusCode = 0 } = response
  const text = await readBounded(response, MAX_ERROR_BYTES, AbortSignal.timeout(ERROR_MS)).catch(() => '')
  const { error = 'bad_answer', message = `status ${statusCode}` } = parseAgentdError(`${text}`)
  return new AgentdError(error, message, { status: statusCode })
}

/** Parses an error body of agentd; empty if the body is not one of agentd's errors. */
export function parseAgentdError(body: string): { error?: string; message?: string } {
  try {
    const { error, message } = JSON.parse(body)
    if (typeof error !== 'string' || typeof message !== 'string') return {}
    return { error: error.slice(0, 100), message: storableText(message.slice(0, 2000)) }
  } catch {
    return {}
  }
}
