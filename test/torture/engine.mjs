/**
 * Stands in for the engine in the torture tests: it is ready at once, and a task run ends as soon as it is requested.
 * It speaks as much of the gateway's protocol as agentd and the tests need; `test/engine` shows that the real engine
 * speaks it.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'

const port = Number(process.argv[process.argv.indexOf('--port') + 1])
const server = createServer((_, response) => response.end())
const sockets = new WebSocketServer({ server })
const tasks = new Map()
/** Runs that have ended, newest first. */
const runs = []

const methods = {
  connect({ auth }) {
    if (auth.token !== process.env.OPENCLAW_GATEWAY_TOKEN) throw new Error('another token')
  },
  'cron.add'(task) {
    const id = randomUUID()
    tasks.set(id, { ...task, id, createdAtMs: Date.now() })
    return tasks.get(id)
  },
  'cron.get': ({ id }) => tasks.get(id),
  'cron.list': () => ({ jobs: [...tasks.values()] }),
  'cron.remove': ({ id }) => tasks.delete(id),
  'cron.run'({ id }) {
    const runId = randomUUID()
    runs.unshift({ jobId: id, runId, ts: Date.now(), status: 'ok' })
    for (const client of sockets.clients) send(client, { type: 'event', event: 'cron' })
    return { ok: true, runId }
  },
  'cron.runs': ({ id }) => ({ entries: runs.filter(({ jobId }) => !id || jobId === id), hasMore: false }),
}

const send = (socket, frame) => socket.send(JSON.stringify(frame))

sockets.on('connection', (socket) => {
  socket.on('message', (data) => {
    const { id, method, params } = JSON.parse(data)
    try {
      send(socket, { type: 'res', id, ok: true, payload: methods[method](params) })
    } catch ({ message }) {
      send(socket, { type: 'res', id, ok: false, error: { code: 'INVALID_REQUEST', message } })
    }
  })
  send(socket, { type: 'event', event: 'connect.challenge' })
})
process.on('SIGTERM', () => process.exit())
server.listen(port, '127.0.0.1')
