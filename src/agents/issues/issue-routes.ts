import { messages, notFound } from '../../errors.ts'
import { type Route, routesOf } from '../../http/route.ts'

const route = routesOf('Issues')

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/**
 * Issues are a closed beta: they return 404 for accounts outside the operator's own domain (contract 4.3, 7.1). Berth
 * has no such domain, so every account gets 404.
 */
export function issueRoutes(): Route[] {
  return METHODS.map((method) =>
    route({
      method,
      path: '/v0/issues',
      aliases: ['/v0/issues/*issue'],
      id: `${method}Issues`,
      summary: 'Closed beta',
      description: 'Not available to any account: Berth has no issues.',
      scope: 'any',
      callers: ['gateway', 'platform'],
      // OpenAPI requires a success response; the document shows the 404 instead.
      success: { status: 404, description: 'Closed beta.' },
      errors: [400, 404],
      async handle() {
        throw notFound(messages.noIssues)
      },
    }),
  )
}
