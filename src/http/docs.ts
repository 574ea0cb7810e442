/** `/openapi.json`, and `/docs`: the same document for people, without anything from another host. */
import { z } from 'zod'
import { type Document, PAGE_POLICY, renderPage } from './docs/page.ts'
import { openApiDocument } from './openapi.ts'
import { type Route, route } from './route.ts'

const TAG = 'Documentation'

/** Routes that serve the document of `routes` and of themselves. */
export function documentRoutes(routes: Route[], publicUrl: string | undefined, version: string): Route[] {
  const own: Route[] = [
    route({
      method: 'get',
      path: '/openapi.json',
      id: 'openapi',
      tag: TAG,
      summary: 'This API as an OpenAPI 3.1 document',
      scope: null,
      success: { status: 200, description: 'The document.', body: z.looseObject({}) },
      handle: async () => ({ body: document }),
    }),
    route({
      method: 'get',
      path: '/docs',
      id: 'docs',
      tag: TAG,
      summary: 'This API as a page for people',
      scope: null,
      success: { status: 200, description: 'The page.', mediaType: 'text/html' },
      async handle({ res }) {
        res.set({ 'content-security-policy': PAGE_POLICY, 'cache-control': 'no-cache' })
        res.type('html').send(page)
        return undefined
      },
    }),
    route({
      method: 'get',
      path: '/',
      id: 'root',
      tag: TAG,
      summary: 'Leads to the page',
      scope: null,
      success: { status: 302, description: 'Go to `/docs`.' },
      async handle({ res }) {
        res.redirect('/docs')
        return undefined
      },
    }),
  ]
  // What a client says in its Host header is not repeated to others: `/` is wherever the document came from.
  const servers = [{ url: publicUrl ?? '/' }]
  const document = { ...openApiDocument([...routes, ...own], version), servers }
  const page = renderPage(document as unknown as Document, publicUrl)
  return own
}
