/** A TLS server that sends as many bytes as the path says. Sends its port to its parent process. */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { HOST, ROOTS } from './egress.ts'

const CHUNK = Buffer.alloc(65_536, 'The quick brown fox jumps over the lazy dog. ')

const server = createServer(ROOTS.leafFor(HOST), async (req, res) => {
  let left = Number(req.url?.slice(1))
  res.writeHead(200, { 'content-length': left })
  for (; left > 0; left -= CHUNK.length)
    if (!res.write(CHUNK.subarray(0, Math.min(left, CHUNK.length))))
      await new Promise((resolve) => res.once('drain', resolve))
  res.end()
})
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
