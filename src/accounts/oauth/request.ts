/** The authorization request of a client, as the query of the consent page has it (OAuth 2.1, 4.1.1; RFC 7636, 8707). */
import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import type { Scope } from '../../http/principal.ts'
import { describeIssue, text } from '../../http/shapes.ts'
import type { Client } from './client-document.ts'

/** The scopes that a client can get: those of the tools. */
export const SCOPES = [
  'org:agents:read',
  'org:agents:write',
  'org:files:read',
  'org:files:write',
] as const satisfies Scope[]
export type GrantedScope = (typeof SCOPES)[number]
/** For a client that asks for no scope that there is. */
const DEFAULT_SCOPES: GrantedScope[] = ['org:agents:write', 'org:files:write']

const parameters = z.object({
  response_type: z.literal('code', 'must be code'),
  client_id: text(2048),
  redirect_uri: text(2048),
  code_challenge: z.string().regex(/^[\w-]{43}$/, 'must be a SHA-256 in base64url'),
  code_challenge_method: z.literal('S256', 'must be S256'),
  resource: text(2048),
  scope: text(2048).default(''),
  state: text(2048).optional(),
})

export interface AuthorizationRequest {
  clientId: string
  redirectUri: string
  codeChallenge: string
  scopes: GrantedScope[]
  state: string | undefined
}

/** Parses the query. @param resource the URL of `/mcp`. @throws ApiError 400 naming the parameter. */
export function readRequest(query: string, resource: string): AuthorizationRequest {
  const search = new URLSearchParams(query)
  const names = [...search.keys()]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw badRequest(`${twice}: given twice`)
  const parsed = parameters.safeParse(Object.fromEntries(search))
  if (!parsed.success) throw badRequest(describeIssue(parsed.error))
  const { client_id, redirect_uri, code_challenge, scope, state } = parsed.data
  if (parsed.data.resource !== resource) throw badRequest(`resource: must be ${resource}`)
  const asked = scope.split(' ')
  const known = SCOPES.filter((one) => asked.includes(one))
  return {
    clientId: client_id,
    redirectUri: redirect_uri,
    codeChallenge: code_challenge,
    scopes: known.length > 0 ? known : DEFAULT_SCOPES,
    state,
  }
}

/** URLs that a browser runs or shows itself, so that no program of the user gets the code. */
const NO_PROGRAM = /^(javascript|data|vbscript|file|blob|about|filesystem|ws|wss|view-source):$/

/**
 * The URL to which the code goes: exactly one of those in the client's document. Programs on the user's machine listen
 * on any port (RFC 8252, 7.3).
 * @throws ApiError 400
 */
export function requireRedirect({ redirectUris }: Client, uri: string): URL {
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  const asListed = url && isLoopback(url) ? withoutPort(uri) : uri
  const isListed = redirectUris.some((one) =>
    URL.canParse(one) && isLoopback(new URL(one)) ? withoutPort(one) === asListed : one === asListed,
  )
  if (!url || !isListed) throw badRequest('redirect_uri: is not in the document of the client')
  const isSafe = url.protocol === 'http:' ? isLoopback(url) : !NO_PROGRAM.test(url.protocol)
  if (!isSafe || url.hash)
    throw badRequest('redirect_uri: must be https, loopback, or the scheme of a program')
  return url
}

const isLoopback = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && /^(127\.0\.0\.1|localhost|\[::1\])$/.test(hostname)

function withoutPort(uri: string): string {
  const url = new URL(uri)
  url.port = ''
  return url.href
}
