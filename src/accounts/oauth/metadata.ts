/** Where clients of `/mcp` find out how to sign in (RFC 9728, RFC 8414). */
import type { Request } from 'express'
import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { dashboardUrl } from '../sign-in.ts'
import { SCOPES } from './request.ts'

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource/mcp'

/** The origin of this Berth, which is its issuer. */
export function issuerOf(req: Request, publicUrl: string | undefined): string {
  const url = dashboardUrl(req, publicUrl)
  if (!url) throw badRequest('Host: is not a host name')
  return url.origin
}

export const resourceOf = (issuer: string): string => `${issuer}/mcp`

/** `WWW-Authenticate` of a 401 from `/mcp`. */
export const challengeOf = (issuer: string): string =>
  `Bearer resource_metadata="${issuer}${RESOURCE_METADATA}", scope="org:agents:write org:files:write"`

export function metadataRoutes(publicUrl: string | undefined): Route[] {
  const route = routesOf('MCP')
  const metadata = (path: string, id: string, make: (issuer: string) => Record<string, unknown>) =>
    route({
      method: 'get',
      path,
      id,
      summary: 'Get metadata for OAuth',
      scope: null,
      origins: 'any',
      success: { description: 'The metadata.', body: z.looseObject({}) },
      handle: async ({ req }) => ({ body: make(issuerOf(req, publicUrl)) }),
    })
  const resource = (issuer: string) => ({
    resource: resourceOf(issuer),
    resource_name: 'Berth',
    authorization_servers: [issuer],
    scopes_supported: SCOPES,
    bearer_methods_supported: ['header'],
  })
  return [
    metadata(RESOURCE_METADATA, 'mcpResource', resource),
    // Clients that do not read the challenge look here.
    metadata('/.well-known/oauth-protected-resource', 'mcpResourceAtRoot', resource),
    metadata('/.well-known/oauth-authorization-server', 'oauthServer', (issuer) => ({
      issuer,
      authorization_endpoint: `${issuer}/dashboard/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
      scopes_supported: SCOPES,
    })),
  ]
}
