import { messages, notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/**
 * Issues are a closed beta: for accounts outside of the operator's own domain they are 404 (contract 4.3, 7.1).
 * Berth has none, so that every account is outside.
 */
export function issueRoutes(): Route[] {
  return METHODS.map((method) =>
    route({
      method,
      path: '/v0/issues',
      aliases: ['/v0/issues/*issue'],
      id: `${method}Issues`,
      tag: 'Issues',
      summary: 'Closed beta',
      description: 'Not open to any account: Berth has no issues.',
      scope: 'any',
      callers: ['gateway', 'platform'],
      // OpenAPI asks for a success; the document shows the 404 in its place.
      success: { status: 404, description: 'Closed beta.' },
      errors: [400, 404],
      async handle() {
        throw notFound(messages.noIssues)
      },
    }),
  )
}
