/** `/openapi.json`, and `/docs`: the same document as a page, without anything from another host. */
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Request, Response } from 'express'
import { z } from 'zod'
import { type Document, PAGE_POLICY, renderPage } from './docs/page.ts'
import { withExample } from './fields.ts'
import { openApiDocument } from './openapi.ts'
import { type Route, routesOf } from './route.ts'

const route = routesOf('Documentation')
const UNCHANGED = { status: 304, description: 'The client already has it: `If-None-Match`.' }

/**
 * Routes that serve the document of `routes` and of themselves.
 * @param home where `/` redirects browsers.
 */
export function documentRoutes(
  routes: Route[],
  { publicUrl, version, home }: { publicUrl: string | undefined; version: string; home: string },
): Route[] {
  const ownRoutes: Route[] = [
    route({
      method: 'get',
      path: '/openapi.json',
      id: 'openapi',
      summary: 'Get this API as an OpenAPI 3.1 document',
      scope: null,
      origins: 'any',
      success: {
        description: 'The document.',
        body: withExample(z.looseObject({}), { openapi: '3.1.0', paths: {} }),
      },
      otherSuccess: UNCHANGED,
      async handle({ req, res }) {
        sendDocument(req, res)
        return undefined
      },
    }),
    route({
      method: 'get',
      path: '/docs',
      id: 'docs',
      summary: 'Get this API as a web page',
      scope: null,
      success: { description: 'The page.', mediaType: 'text/html' },
      otherSuccess: UNCHANGED,
      async handle({ req, res }) {
        res.set('content-security-policy', PAGE_POLICY)
        sendPage(req, res)
        return undefined
      },
    }),
    route({
      method: 'get',
      path: '/',
      id: 'root',
      summary: 'Redirect to the page',
      scope: null,
      success: {
        status: 302,
        description: 'Redirects to `/docs`, or browsers to the dashboard if it is enabled.',
      },
      async handle({ req, res }) {
        const isBrowser = req.accepts(['json', 'html']) === 'html'
        res.vary('Accept').redirect(isBrowser ? home : '/docs')
        return undefined
      },
    }),
  ]
  // The Host header of one client must not appear in responses to others: `/` is wherever the document came from.
  const servers = [{ url: publicUrl ?? '/' }]
  const makeDocument = () => ({ ...openApiDocument([...routes, ...ownRoutes], version), servers })
  const sendDocument = sender('json', () => JSON.stringify(makeDocument()))
  const sendPage = sender('html', () => renderPage(makeDocument() as unknown as Document, publicUrl))
  return ownRoutes
}

/**
 * Sends the same text each time, a few hundred kilobytes: compressed, and once to each browser. It is created on first
 * use, because many processes never need it.
 */
function sender(type: 'json' | 'html', make: () => string) {
  let made: { text: string; compressed: Buffer; etag: string } | undefined
  return (req: Request, res: Response): void => {
    made ??= compress(make())
    const { text, compressed, etag } = made
    res.type(type).set({ etag, 'cache-control': 'no-cache', vary: 'Accept-Encoding' })
    if (req.fresh) res.status(304).end()
    else if (req.acceptsEncodings('gzip')) res.set('content-encoding', 'gzip').send(compressed)
    else res.send(text)
  }
}

function compress(text: string) {
  const etag = `W/"${createHash('sha256').update(text).digest('base64url')}"`
  return { text, compressed: gzipSync(text), etag }
}
