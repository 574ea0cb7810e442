import createClient from 'openapi-fetch'
import type { paths } from './schema.ts'

/** The API, as its own document types it. The session is a cookie; the header shows that this page asks. */
export const api = createClient<paths>({ headers: { 'berth-session': '1' } })

let shown: string | undefined
/** Requests that are about the session, whichever workspace it is in. */
const OF_SESSION = /^\/v0\/(me|log(in|out)\b.*|sessions\/(move|join))$/

/** Says for which workspace the page asks from now on: the session may go on in another one, by another tab. */
export function showWorkspace(id: string | undefined): void {
  shown = id
}

api.use({
  onRequest({ request, schemaPath }) {
    if (shown && !OF_SESSION.test(schemaPath)) request.headers.set('berth-workspace', shown)
  },
})

/** An answer that is no success, with the API's own message. */
export class RequestError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The body of a success. @throws RequestError */
export async function unwrap<T>(
  asked: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await asked
  if (!response.ok || data === undefined) {
    const said = (error as { error?: unknown } | undefined)?.error
    const detail = response.headers.get('error-detail')
    const message = typeof said === 'string' ? said : `${response.status} ${response.statusText}`
    throw new RequestError(response.status, detail ? `${message}: ${detail}` : message)
  }
  return data
}
