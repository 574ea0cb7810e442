/**
 * The alternative to events: each event is a NOTIFY, which a server in Node writes to all listeners. No rows are read.
 */
import { createServer, type ServerResponse } from 'node:http'
import pg from 'pg'

const { PORT, DATABASE_URL } = process.env
const listeners = new Set<ServerResponse>()
const client = new pg.Client({ connectionString: DATABASE_URL })
await client.connect()
client.on('notification', ({ payload }) => {
  for (const response of listeners) response.write(`event: file.created\ndata: ${payload}\n\n`)
})
await client.query('LISTEN bare_event')
createServer((_req, res) => {
  res.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n')
  listeners.add(res)
  res.on('close', () => listeners.delete(res))
}).listen(Number(PORT), '127.0.0.1')
