/** Repeats requests that met a busy or unreachable Berth, if that is safe. */

/** Nothing was done, or it is safe to do it again: `Retry-After` says when. */
const RETRIED = new Set([429, 503])
const FIRST_MS = 500
/** A longer `Retry-After` is the caller's to wait for. */
const LONGEST_MS = 30_000

interface SendOptions {
  retries: number
  fetch(request: Request): Promise<Response>
}

/** The response to a request, which is sent again after 429, 503 or a lost connection, unless it may have an effect. */
export async function send(request: Request, { retries, fetch }: SendOptions): Promise<Response> {
  const tries = isRepeatable(request) ? retries : 0
  for (let failed = 0; ; failed++) {
    const isLast = failed >= tries
    let waitMs = FIRST_MS * 2 ** failed
    try {
      const response = await fetch(isLast ? request : request.clone())
      if (isLast || !RETRIED.has(response.status)) return response
      waitMs = retryAfterMs(response) ?? waitMs
      if (waitMs > LONGEST_MS) return response
      await response.body?.cancel()
    } catch (error) {
      if (isLast || request.signal.aborted) throw error
    }
    await pause(waitMs, request.signal)
  }
}

/** Whether a repeat has no effect of its own: reads, and requests that Berth recognizes by their key. */
const isRepeatable = ({ method, headers }: Request): boolean =>
  method === 'GET' || method === 'HEAD' || headers.has('idempotency-key')

/** The wait that `Retry-After` asks for. Berth sends seconds, a proxy may send a date. */
function retryAfterMs({ headers }: Response): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0)
}

/** @throws the signal's reason if it aborts first. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
