/** Access for clients of `/mcp` through the browser: the consent of a user, and the exchange of its code for a key. */
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { readDestinations } from '../../agent-proxy/destination.ts'
import { ApiError, badRequest, forbidden } from '../../errors.ts'
import { beginEntry, noteCaller } from '../../http/audit.ts'
import { like, withExample } from '../../http/fields.ts'
import { grants } from '../../http/principal.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { text } from '../../http/shapes.ts'
import type { AccountServices } from '../services.ts'
import { findClient } from './client-document.ts'
import { createCode, exchangeCode } from './codes.ts'
import { issuerOf, resourceOf } from './metadata.ts'
import { readRequest, requireRedirect, SCOPES } from './request.ts'

const route = routesOf('MCP clients')
const DAY_MS = 86_400_000
const MAX_FORM = 16_384

const query = withExample(
  text(8192),
  'response_type=code&client_id=https%3A%2F%2Fclient.example.com%2Fmcp.json&redirect_uri=http%3A%2F%2F127.0.0.1%3A7777%2Fback&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=https%3A%2F%2Fberth.example.com%2Fmcp',
)
  .min(1, 'must not be empty')
  .describe('The query string of the page to which the client sent the browser, without the `?`.')
const scopes = withExample(z.array(z.enum(SCOPES)), ['org:agents:read', 'org:files:read'])

const asked = z.object({
  client: z.object({
    id: like('https://client.example.com/mcp.json').describe('The URL of the client’s document.'),
    host: like('client.example.com').describe('The host that vouches for the client.'),
    name: like('Example').nullable().describe('As the client names itself, which nobody verifies.'),
  }),
  returnsTo: like('127.0.0.1:7777').describe(
    'Where the browser goes with the code: a host, or the scheme of a program.',
  ),
  scopes: scopes.describe('What the client asks for and the user can give.'),
  refusalUrl: like('http://127.0.0.1:7777/back?error=access_denied').describe(
    'Where the browser goes if the user refuses.',
  ),
})

export function oauthRoutes(services: AccountServices): Route[] {
  const { keys, prisma, config } = services
  const allowed = readDestinations(config.BERTH_MCP_CLIENT_ALLOW, 'BERTH_MCP_CLIENT_ALLOW')
  const read = async (req: Parameters<typeof issuerOf>[0], query: string) => {
    const issuer = issuerOf(req, config.PUBLIC_URL)
    const request = readRequest(query, resourceOf(issuer))
    const client = await findClient(request.clientId, allowed)
    const url = requireRedirect(client, request.redirectUri)
    /** The URL for the browser, with the response (RFC 9207). */
    const back = (answer: Record<string, string>) => {
      const to = new URL(url)
      const { state } = request
      for (const [name, value] of Object.entries({
        ...answer,
        ...(state !== undefined && { state }),
        iss: issuer,
      }))
        to.searchParams.set(name, value)
      return to.href
    }
    return { request, client, url, back }
  }
  return [
    route({
      method: 'post',
      path: '/v0/oauth/requests',
      id: 'readOAuthRequest',
      summary: 'Read what a client of /mcp asks for',
      description:
        'For the consent page. Fetches the client’s document. 400 if the request is not valid, or the document cannot be read.',
      scope: 'any',
      session: true,
      body: z.object({ query }),
      success: { description: 'The client, and what it asks for.', body: z.object({ data: asked }) },
      async handle({ principal, body, req }) {
        const { request, client, url, back } = await read(req, body.query)
        const data = {
          client: { id: client.id, host: client.host, name: client.name ?? null },
          returnsTo: url.host || url.protocol,
          scopes: request.scopes
            .map((one) => mostOf(principal.scopes, one))
            .filter((one) => one !== undefined),
          refusalUrl: back({ error: 'access_denied' }),
        }
        return { body: { data } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/oauth/grants',
      id: 'grantOAuthRequest',
      summary: 'Give a client of /mcp access',
      description:
        'Creates an API key that works only at `/mcp`, for the user in the workspace of the session. The client gets it in exchange for the code in `url`, once, within a minute. It is in the list of keys, and can be revoked there.',
      scope: 'any',
      session: true,
      body: z.object({
        query,
        scopes: scopes.min(1, 'must not be empty').max(SCOPES.length),
        days: withExample(z.int('must be a whole number').min(1).max(365), 30).describe(
          'After how many days the access ends.',
        ),
      }),
      success: {
        description: 'Where the browser goes.',
        body: z.object({ data: z.object({ url: like('http://127.0.0.1:7777/back?code=…&state=…') }) }),
      },
      async handle({ principal, body, req }) {
        const { request, client, back } = await read(req, body.query)
        const isAsked = body.scopes.every((scope) => request.scopes.some((one) => grants([one], scope)))
        if (!isAsked) throw badRequest('scopes: must be among those that the client asks for')
        if (!body.scopes.every((scope) => grants(principal.scopes, scope)))
          throw forbidden('scopes: must be among your own')
        const code = await createCode(keys, prisma, {
          workspaceId: principal.workspaceId,
          userId: principal.userId,
          name: `MCP: ${client.host}`.slice(0, 255),
          scopes: body.scopes,
          until: new Date(Date.now() + body.days * DAY_MS),
          ...{ clientId: client.id, redirectUri: request.redirectUri, codeChallenge: request.codeChallenge },
        })
        return { body: { data: { url: back({ code }) } } }
      },
    }),
  ]
}

/** The scope, or what the user has of it: who may only read gives only that. */
function mostOf(held: string[], scope: (typeof SCOPES)[number]) {
  const readOnly = scope.replace(/write$/, 'read') as typeof scope
  return [scope, readOnly].find((one) => grants(held, one))
}

const form = z.object({
  grant_type: z.string(),
  code: z.string(),
  redirect_uri: z.string(),
  client_id: z.string(),
  code_verifier: z.string().regex(/^[\w.~-]{43,128}$/),
  resource: z.string().optional(),
})

/** The exchange of a code for a key. OAuth describes it, not the document of the API. */
export function tokenRoute({ keys, prisma, config }: AccountServices): Route {
  return routesOf('MCP')({
    method: 'post',
    path: '/oauth/token',
    id: 'exchangeOAuthCode',
    summary: 'Exchange a code for a key',
    scope: null,
    origins: 'any',
    stream: { mediaType: 'application/x-www-form-urlencoded', schema: form },
    success: { description: 'The key.', body: z.looseObject({}) },
    async handle({ req, res }) {
      const length = Number(req.headers['content-length'] ?? Number.NaN)
      if (!(length <= MAX_FORM))
        throw new ApiError(413, 'too_large', `body: needs a Content-Length up to ${MAX_FORM}`)
      const read = form.safeParse(Object.fromEntries(new URLSearchParams((await buffer(req)).toString())))
      const refuse = (error: string) => ({ status: 400, headers: { 'Error-Code': error }, body: { error } })
      if (!read.success) return refuse('invalid_request')
      const { grant_type, code, client_id, redirect_uri, code_verifier, resource } = read.data
      if (grant_type !== 'authorization_code') return refuse('unsupported_grant_type')
      if (resource !== undefined && resource !== resourceOf(issuerOf(req, config.PUBLIC_URL)))
        return refuse('invalid_target')
      await beginEntry(res)
      const to = { clientId: client_id, redirectUri: redirect_uri, codeVerifier: code_verifier }
      const key = await exchangeCode(keys, prisma, code, to)
      if (!key) return refuse('invalid_grant')
      const { id: keyId, workspaceId, userId, token, scopes, expiresAt } = key
      noteCaller(res, { via: 'key', workspaceId, userId, keyId })
      const expires_in = Math.floor((expiresAt.getTime() - Date.now()) / 1000)
      return { body: { access_token: token, token_type: 'Bearer', expires_in, scope: scopes.join(' ') } }
    },
  })
}
