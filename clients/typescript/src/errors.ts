/** Unsuccessful responses as errors. */

/** A response of the client: the body if it succeeded, or the error's. */
export interface Result<T> {
  data?: T
  error?: unknown
  response: Response
}

/** An unsuccessful response, with the API's message. */
export class RequestError extends Error {
  override name = 'RequestError'
  readonly status: number
  /** The reason for programs, from `Error-Code`. */
  readonly code: string | undefined
  /** Finds the request in Berth's log. */
  readonly requestId: string | undefined
  /** Seconds until a retry may succeed. */
  readonly retryAfter: number | undefined

  constructor(status: number, message: string, headers: Headers = new Headers()) {
    super(message)
    this.status = status
    this.code = headers.get('error-code') ?? undefined
    this.requestId = headers.get('x-request-id') ?? undefined
    this.retryAfter = Number(headers.get('retry-after')) || undefined
  }
}

/** The body of a successful response. @throws RequestError */
export async function unwrap<T>(asked: Result<T> | Promise<Result<T>>): Promise<T> {
  const { data, error, response } = await asked
  if (!response.ok || data === undefined) throw errorOf(response, error)
  return data
}

/** @param body of the response: JSON or text. */
export function errorOf({ status, statusText, headers }: Response, body: unknown): RequestError {
  const said = messageIn(body) ?? `${status} ${statusText}`.trim()
  const detail = headers.get('error-detail')
  return new RequestError(status, detail ? `${said}: ${detail}` : said, headers)
}

/** The message in an error of Berth (a text), of the Pinning Service API, or of OpenAI's API. */
function messageIn(body: unknown): string | undefined {
  const said = (body as { error?: unknown } | undefined)?.error
  if (typeof said === 'string') return said
  const { details, message } = (said ?? {}) as { details?: unknown; message?: unknown }
  return [details, message].find((text) => typeof text === 'string')
}
