/**
 * `berth health [part…]`: asks the process of this machine or container about its health. Exits with 0 if it can work,
 * and each named part that it has is ok. Loads no module of Berth, because it runs every few seconds next to the
 * process that it asks.
 */
import { get } from 'node:http'

const WAIT_MS = 4000
const { BERTH_HEALTH_SOCKET, BERTH_HEALTH_PORT, PORT, HOST } = process.env
const named = process.argv.slice(3)

const host = !HOST || HOST === '0.0.0.0' ? '127.0.0.1' : HOST === '::' ? '::1' : HOST
const port = BERTH_HEALTH_PORT || PORT || 3000
const place = BERTH_HEALTH_SOCKET ? { socketPath: BERTH_HEALTH_SOCKET } : { host, port }
const name = BERTH_HEALTH_SOCKET || `port ${port}`

const asked = get({ ...place, path: '/readyz', agent: false, timeout: WAIT_MS }, async (res) => {
  let body = ''
  for await (const chunk of res.setEncoding('utf8')) body += chunk
  try {
    tell(JSON.parse(body), res.statusCode === 200)
  } catch {
    fail(`${name} is no Berth`)
  }
})
asked.on('timeout', () => asked.destroy(new Error(`no answer within ${WAIT_MS / 1000} s`)))
asked.on('error', (error) => fail(`${name} does not answer: ${error.message || error.code}`))

function tell({ status, parts }, ready) {
  // A part that this process does not have is skipped: a worker without agents needs no Docker.
  const missing = named.filter((name) => parts[name] && parts[name].status !== 'ok')
  const bad = Object.keys(parts).filter((name) => parts[name].status !== 'ok')
  const lines = bad.map((name) => `${name}: ${parts[name].detail ?? parts[name].status}`)
  console.log([status, ...lines].join('\n'))
  if (!ready || missing.length > 0) process.exitCode = 1
}

function fail(message) {
  console.log(message)
  process.exitCode = 1
}
