/**
 * Stands in for the engine in tests that need a misbehaving one. Its environment sets its behaviour, by names that the
 * log does not hide.
 */
import { execSync, spawn } from 'node:child_process'
import { appendFileSync, readFileSync, watch } from 'node:fs'
import { createServer } from 'node:http'
import { basename, dirname, join } from 'node:path'

const {
  AGENT_READY_AFTER_MS = '0',
  AGENT_DIE_AFTER_MS,
  AGENT_DEATHS,
  AGENT_EXIT_CODE = '1',
  AGENT_SAY,
  AGENT_FLOOD_BYTES,
  AGENT_IGNORE_SIGTERM,
  AGENT_HELPER,
  OPENCLAW_CONFIG_PATH,
} = process.env
const say = (level, message, subsystem = 'gateway') =>
  console.log(JSON.stringify({ time: new Date().toISOString(), level, subsystem, message }))

say('info', `environment: ${JSON.stringify(process.env)}`)
if (AGENT_SAY) say('error', AGENT_SAY.replace('{pid}', process.pid))
if (AGENT_IGNORE_SIGTERM) process.on('SIGTERM', () => say('info', 'SIGTERM is not for me'))
// A helper in a separate session, like the engine's spawn broker.
if (AGENT_HELPER) spawn('sleep', [AGENT_HELPER], { detached: true, stdio: 'ignore' })
if (AGENT_FLOOD_BYTES) {
  // Not written by Node itself, which is slower than agentd. In JSON each character becomes six: agentd forwards more
  // in a second than the system buffers for a reader that stalls.
  const flood = `yes '${'\u0001'.repeat(4000)}' | head -c ${AGENT_FLOOD_BYTES}; echo`
  execSync(flood, { stdio: ['ignore', 'inherit', 'inherit'] })
  // Later and repeatedly, because anything that comes while agentd is behind the flood is dropped with it.
  setInterval(() => say('info', 'the flood is over'), 1500)
}

// Like the engine, whatever has changed.
watch(dirname(OPENCLAW_CONFIG_PATH), (_, name) => {
  if (name === basename(OPENCLAW_CONFIG_PATH))
    say('info', 'config hot reload applied (all)', 'gateway/reload')
})

const started = Date.now()
const server = createServer((req, res) => {
  // As it is now, and whether a parent seems to listen.
  if (req.url === '/environment') return res.end(JSON.stringify({ env: process.env, ipc: !!process.send }))
  const ready = Date.now() - started >= Number(AGENT_READY_AFTER_MS)
  res.writeHead(req.url === '/readyz' && ready ? 200 : 503).end(JSON.stringify({ ready }))
})
server.on('error', (error) => {
  say('error', error.message)
  process.exit(1)
})
server.listen(Number(process.argv[process.argv.indexOf('--port') + 1]), '127.0.0.1')
if (AGENT_DIE_AFTER_MS && mayDie())
  setTimeout(() => process.exit(Number(AGENT_EXIT_CODE)), Number(AGENT_DIE_AFTER_MS))

/** Whether this start is among the first AGENT_DEATHS; without a number, all are. */
function mayDie() {
  if (!AGENT_DEATHS) return true
  const file = join(process.env.TMPDIR, 'starts')
  appendFileSync(file, '.')
  return readFileSync(file, 'utf8').length <= Number(AGENT_DEATHS)
}
