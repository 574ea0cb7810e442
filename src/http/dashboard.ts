/** The dashboard: prebuilt files, read once and served below `/dashboard`; its own router handles its pages. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type RequestHandler, Router } from 'express'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/**
 * Scripts and styles only from this host, nothing inline. Frames and images show content from gateways, which have
 * their own hosts and so their own origins. The page also reads CARs and texts there.
 */
const policy = (gatewayDomain: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: *.${gatewayDomain}:*`,
    `connect-src 'self' *.${gatewayDomain}:*`,
    `frame-src *.${gatewayDomain}:*`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

const DIST = new URL('../../dashboard/dist/', import.meta.url).pathname
const YEAR_SECONDS = 31_536_000

interface Asset {
  type: string
  plain: Buffer
  gzip?: Buffer
}

/**
 * Serves `dashboard/dist`; mount it on paths without an API route.
 * @param gatewayDomain `BERTH_GATEWAY_DOMAIN`.
 */
export function dashboard(gatewayDomain: string): RequestHandler {
  const assets = readAssets()
  const contentPolicy = policy(gatewayDomain)
  const send = (name: string, cache: string): RequestHandler => {
    const asset = assets.get(name)
    return (req, res, next) => {
      if (!asset) return next()
      const isGzip = req.acceptsEncodings('gzip') === 'gzip'
      res.set({
        'content-type': asset.type,
        'content-security-policy': contentPolicy,
        'cache-control': cache,
        vary: 'accept-encoding',
        ...(isGzip && { 'content-encoding': 'gzip' }),
      })
      // Compressed on the first request: many processes never serve it, and compressing all files takes a quarter of a
      // second.
      if (isGzip) asset.gzip ??= gzipSync(asset.plain)
      res.end(isGzip ? asset.gzip : asset.plain)
    }
  }
  const router = Router({ caseSensitive: true })
  for (const name of assets.keys())
    router.get(
      `/dashboard/${name}`,
      send(name, name.startsWith('assets/') ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache'),
    )
  const page = send('index.html', 'no-cache')
  router.get(['/login', '/dashboard', '/dashboard/*page'], (req, res, next) =>
    req.path.startsWith('/dashboard/assets/') ? next() : page(req, res, next),
  )
  return router
}

/** Empty if the dashboard was not built. */
function readAssets(): Map<string, Asset> {
  if (!existsSync(DIST)) return new Map()
  const files = readdirSync(DIST, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name)
      const plain = readFileSync(path)
      const type = TYPES[extname(name)] ?? 'application/octet-stream'
      return [relative(DIST, path).replaceAll(sep, '/'), { type, plain }]
    }),
  )
}
