import createClient from 'openapi-fetch'
import type { paths } from './schema.ts'

/** The API, typed by its OpenAPI document. The session is a cookie; the header marks requests of this page. */
export const api = createClient<paths>({ headers: { 'berth-session': '1' } })

let shown: string | undefined
/** Requests about the session, which do not depend on its workspace. */
const OF_SESSION = /^\/v0\/(me|log(in|out)\b.*|sessions\/(move|join))$/

/** Sets the workspace that later requests are for: another tab may switch the session to a different workspace. */
export function showWorkspace(id: string | undefined): void {
  shown = id
}

api.use({
  onRequest({ request, schemaPath }) {
    if (shown && !OF_SESSION.test(schemaPath)) request.headers.set('berth-workspace', shown)
  },
})

/** An unsuccessful response, with the API's message. */
export class RequestError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The body of a successful response. @throws RequestError */
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
