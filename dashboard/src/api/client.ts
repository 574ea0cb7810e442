import { createClient } from '../../../clients/typescript/src/index.ts'

export {
  type operations,
  type paths,
  RequestError,
  serverEvents,
  signInCode,
  unwrap,
  waitForOperation,
} from '../../../clients/typescript/src/index.ts'

/** The session is a cookie; the header marks requests of this page. TanStack Query repeats requests. */
export const api = createClient({ headers: { 'berth-session': '1' }, retries: 0 })

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
