/** `/openapi.json`, and `/docs`: the same document for people, without anything from another host. */
import { z } from 'zod'
import { openApiDocument } from './openapi.ts'
import { type Route, route } from './route.ts'

/** Routes that serve the document of `routes` and of themselves. */
export function documentRoutes(routes: Route[], publicUrl: string | undefined, version: string): Route[] {
  const own: Route[] = [
    route({
      method: 'get',
      path: '/openapi.json',
      id: 'openapi',
      tag: 'Documentation',
      summary: 'This API as an OpenAPI 3.1 document',
      scope: null,
      success: { status: 200, description: 'The document.', body: z.looseObject({}) },
      async handle({ req }) {
        const url = publicUrl ?? `${req.protocol}://${req.get('host')}`
        return { body: { ...document, servers: [{ url }] } }
      },
    }),
  ]
  const document = openApiDocument([...routes, ...own], version)
  return own
}
