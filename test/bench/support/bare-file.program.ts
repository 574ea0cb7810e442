/**
 * The least that a server in Node can do: the same bytes for every request. Sends its address to its parent process.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const bytes = Buffer.alloc(Number(process.argv[2]))
const headers = { 'content-type': 'application/octet-stream', 'content-length': bytes.length }
const server = createServer((_req, res) => res.writeHead(200, headers).end(bytes))
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
