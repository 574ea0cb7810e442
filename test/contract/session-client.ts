/** Dashboard sessions for tests. */
import assert from 'node:assert/strict'
import type { Client, Reply } from '../support/client.ts'
import type { Workspace } from './context.ts'

export const OF_DASHBOARD = { 'berth-session': '1' }
export const SESSION_NEEDED = 'Only a session of the dashboard may do this: sign in at /login'
export const ENDED = 'The session has ended: sign in again'
/** The refusal of a request with a session cookie that does not come from the dashboard. */
export const OTHER = 'Requests of a session come from the dashboard alone'

/** A session of a user, as a browser holds it. */
export async function openSession(anonymous: Client, own: Workspace, user?: string) {
  const token = await own.loginToken(user)
  return { token, ...sessionOf(anonymous, await anonymous.post('/v0/login', { token })) }
}

/** The session that a sign-in opened. */
export function sessionOf(anonymous: Client, { status, body, headers }: Reply) {
  assert.equal(status, 200, JSON.stringify(body))
  const setCookie = headers.get('set-cookie') ?? ''
  const cookie = setCookie.split(';')[0] ?? ''
  const ask = (method: string, path: string, headers: Record<string, string> = {}, json?: unknown) =>
    anonymous.request(method, path, {
      json,
      headers: { cookie, ...(method !== 'GET' && OF_DASHBOARD), ...headers },
    })
  return { id: String(body.data.id), setCookie, cookie, ask }
}
