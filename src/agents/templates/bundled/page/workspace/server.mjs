/** Serves the folder `site` next to this file, without packages. */
import { createReadStream } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, sep } from 'node:path'
import { pipeline } from 'node:stream'

const SITE = join(import.meta.dirname, 'site')
const PORT = Number(process.env.PORT ?? 4180)

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.xml': 'application/xml',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.avif': 'image/avif',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.mp4': 'video/mp4',
  '.pdf': 'application/pdf',
}

const server = createServer((req, res) => {
  answer(req, res).catch((error) => {
    console.error(error)
    if (res.headersSent) res.destroy()
    else say(res, 500, 'Something went wrong')
  })
})
server.listen(PORT, '127.0.0.1', () => console.log(`the page is on port ${PORT}`))

async function answer(req, res) {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.setHeader('allow', 'GET, HEAD')
    return say(res, 405, 'Only GET and HEAD')
  }
  const prefix = prefixOf(req)
  const path = pathOf(req)
  const found = path === undefined ? undefined : await find(path)
  if (!found) return say(res, 404, 'There is no such page')
  // Without the slash, relative links of a folder's page would lead next to the folder.
  if (found.isFolder && !path.endsWith('/')) {
    res.writeHead(308, { location: `${prefix}${encodeURI(path)}/`, 'content-length': 0 })
    return res.end()
  }
  const type = TYPES[extname(found.file).toLowerCase()] ?? 'application/octet-stream'
  const headers = { 'content-type': type, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' }
  if (type.startsWith('text/html')) {
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    const html = Buffer.from(withBase(await readFile(found.file, 'utf8'), `${prefix}${encodeURI(folder)}`))
    res.writeHead(200, { ...headers, 'content-length': html.length })
    return res.end(req.method === 'HEAD' ? undefined : html)
  }
  const modified = new Date(Math.floor(found.stats.mtimeMs / 1000) * 1000)
  if (Date.parse(req.headers['if-modified-since'] ?? '') >= modified.getTime()) {
    res.writeHead(304, { 'cache-control': 'no-cache' })
    return res.end()
  }
  res.writeHead(200, {
    ...headers,
    'content-length': found.stats.size,
    'last-modified': modified.toUTCString(),
  })
  if (req.method === 'HEAD' || found.stats.size === 0) return res.end()
  // A file that grows in the meantime must not exceed its announced length.
  pipeline(createReadStream(found.file, { end: found.stats.size - 1 }), res, () => {})
}

/** The decoded path; undefined if it does not decode, or contains an empty or hidden name or `..`. */
function pathOf({ url }) {
  try {
    const path = decodeURIComponent(new URL(`http://page${url}`).pathname)
    return /\/[/.]|[\0\\]/.test(path) ? undefined : path
  } catch {
    return undefined
  }
}

/** The file for a path; for a folder, its index.html. Links cannot lead out of the site. */
async function find(path) {
  try {
    const root = await realpath(SITE)
    const target = await realpath(join(SITE, path))
    const isFolder = (await stat(target)).isDirectory()
    const file = isFolder ? await realpath(join(target, 'index.html')) : target
    const stats = await stat(file)
    if (!file.startsWith(`${root}${sep}`) || !stats.isFile()) return undefined
    return { file, stats, isFolder }
  } catch {
    return undefined
  }
}

/** The path under which the page is served, unless it is at the root of a host. */
function prefixOf({ headers }) {
  const prefix = headers['x-forwarded-prefix'] ?? ''
  return /^(\/[\w-]+)*$/.test(prefix) ? prefix : ''
}

/** Makes links without a leading slash lead to the same place at every address of the page. */
function withBase(html, href) {
  if (/<base\s/i.test(html)) return html
  const escaped = href.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  return html.replace(/<head(\s[^>]*)?>/i, (head) => `${head}<base href="${escaped}">`)
}

function say(res, status, text) {
  const body = Buffer.from(`${text}\n`)
  res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': body.length })
  res.end(body)
}
