/** Errors as a message, advice, and an exit code for programs. */
import { OperationError, RequestError } from '../../typescript/src/index.ts'

/** Exit codes, as `docs/cli.md` lists them. */
export const EXIT = {
  failed: 1,
  usage: 2,
  signIn: 3,
  forbidden: 4,
  missing: 5,
  conflict: 6,
  unavailable: 7,
  interrupted: 130,
} as const

/** The command line is wrong. */
export class UsageError extends Error {}

/** An error with advice. */
export class AdvisedError extends Error {
  readonly advice: string
  readonly exit: number
  constructor(message: string, advice: string, exit: number = EXIT.failed) {
    super(message)
    this.advice = advice
    this.exit = exit
  }
}

export interface Explained {
  message: string
  advice?: string | undefined
  exit: number
}

/** @param place the URL of the Berth that was called, if one was. */
export function explain(error: unknown, place: string | undefined): Explained {
  if (error instanceof UsageError) return { message: error.message, exit: EXIT.usage }
  if (error instanceof AdvisedError) return error
  if (error instanceof OperationError) {
    const { id, kind } = error.operation
    return { message: `${kind}: ${error.message}`, advice: `berth operations show ${id}`, exit: EXIT.failed }
  }
  if (error instanceof RequestError) return explainRequest(error, place)
  const lost = explainConnection(error, place)
  if (lost) return lost
  const { message, syscall } = error as NodeJS.ErrnoException
  // A local file that cannot be read is the caller's, everything else a bug.
  return { message: syscall ? message : `${(error as Error).stack ?? error}`, exit: EXIT.failed }
}

function explainRequest(
  { status, code, message, retryAfter, requestId }: RequestError,
  place?: string,
): Explained {
  const id = requestId && status >= 500 ? `the log of ${place} has more under ${requestId}` : undefined
  if (status === 401)
    return { message, advice: `get a key that works there: berth login ${place}`, exit: EXIT.signIn }
  if (code === 'missing_scope')
    return {
      message,
      advice: 'use a key with that scope: npx berth keys create --scopes …',
      exit: EXIT.forbidden,
    }
  if (status === 402 || status === 403) return { message, exit: EXIT.forbidden }
  if (status === 404)
    return { message, advice: 'is it in another workspace? berth whoami', exit: EXIT.missing }
  if ([409, 412, 422, 423].includes(status)) return { message, exit: EXIT.conflict }
  if ([429, 502, 503, 504, 507].includes(status)) {
    const again = retryAfter ? `try again in ${retryAfter} s` : 'try again later'
    return { message, advice: [again, id].filter(Boolean).join('; '), exit: EXIT.unavailable }
  }
  return { message, advice: id, exit: EXIT.failed }
}

const CONNECTION: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there: is Berth running, and is this its port?',
  ENOTFOUND: 'there is no such host: check the URL',
  EAI_AGAIN: 'the name cannot be resolved: check the network',
  ETIMEDOUT: 'it does not answer: check the network, or a firewall',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer: check the network, or a firewall',
  UND_ERR_SOCKET: 'the connection broke: try again',
  ECONNRESET: 'the connection broke: try again',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS on this port: try http://',
}

/** `fetch` hides the reason in `cause`. */
function explainConnection(error: unknown, place = 'Berth'): Explained | undefined {
  if (!(error instanceof TypeError)) return undefined
  const cause = error.cause as (NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }) | undefined
  const code = cause?.code ?? cause?.errors?.[0]?.code
  if (!code && !/fetch failed|terminated/.test(error.message)) return undefined
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code ?? '')
  const advice = isCertificate
    ? 'its certificate is not trusted: set NODE_EXTRA_CA_CERTS to the file of its authority'
    : (CONNECTION[code ?? ''] ?? cause?.message)
  return { message: `cannot reach ${place}${code ? ` (${code})` : ''}`, advice, exit: EXIT.unavailable }
}
