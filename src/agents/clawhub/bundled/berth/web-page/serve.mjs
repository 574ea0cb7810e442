#!/usr/bin/env node
/** Serves the files of a folder on a port of this machine: `serve.mjs <folder> <port>`. Nothing outside of it, no listings. */
import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.pdf': 'application/pdf',
}

const [folder, port] = process.argv.slice(2)
if (!folder || !/^\d+$/.test(port ?? '')) {
  console.error('usage: serve.mjs <folder> <port>')
  process.exit(2)
}
const root = await realpath(folder)

createServer(async (req, res) => {
  const found =
    req.method === 'GET' || req.method === 'HEAD' ? await find(req.url).catch(() => undefined) : undefined
  if (!found) return res.writeHead(404, { 'content-type': 'text/plain' }).end('Not found\n')
  if (found.folder) return res.writeHead(308, { location: found.folder }).end()
  const type = TYPES[extname(found.path).toLowerCase()] ?? 'application/octet-stream'
  res.writeHead(200, {
    'content-type': type,
    'content-length': found.size,
    'x-content-type-options': 'nosniff',
  })
  if (req.method === 'HEAD') return res.end()
  // Who goes away in the middle is no error of ours.
  await pipeline(createReadStream(found.path), res).catch(() => {})
}).listen(Number(port), '127.0.0.1', () => console.log(`${root} on port ${port}`))

/** The file that a request names; for a folder without its last slash, where that is. */
async function find(url) {
  // Joined, not resolved: `//x/y` would be taken for another host.
  const path = decodeURIComponent(new URL(`http://x${url}`).pathname)
  if (path.split('/').some((name) => name.startsWith('.'))) return undefined
  let real = await realpath(join(root, path))
  if ((await stat(real)).isDirectory()) {
    // Relative: the prefix of a route is not known here.
    if (!path.endsWith('/')) return { folder: `${path.split('/').at(-1)}/` }
    real = await realpath(join(real, 'index.html'))
  }
  const { size } = await stat(real)
  return real.startsWith(root + sep) ? { path: real, size } : undefined
}
