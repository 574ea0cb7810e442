import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import {
  agentEnvironment,
  failureReason,
  parseLogLine,
  probe,
  secretValues,
} from '../../../agentd/openclaw.ts'
import { agentPaths } from '../../../agentd/paths.ts'
import type { AgentdConfig, LogLine } from '../../../agentd/protocol.ts'

const paths = agentPaths('/srv/x/home', '/srv/x/tmp')
const config = { engineDir: '/srv/engine', gatewayPort: 20_000 } as AgentdConfig

test('a line of the gateway’s log keeps its time, level and subsystem', () => {
  const time = '2026-11-21T17:23:11.628+00:00'
  const entry = { time, level: 'warn', subsystem: 'gateway/ws', message: 'hello', more: 1 }
  const parsed = {
    timestamp: '2026-11-21T17:23:11.628Z',
    level: 'WARN',
    source: 'gateway/ws',
    message: 'hello',
  }
  assert.deepEqual(parseLogLine(JSON.stringify(entry), 'stdout'), parsed)
  const sources = ['gateway', 'cron', undefined, 7].map(
    (subsystem) => parseLogLine(JSON.stringify({ ...entry, subsystem }), 'stdout').source,
  )
  assert.deepEqual(sources, ['gateway', 'gateway/cron', 'gateway', 'gateway'])
})

test('a log line of any other form is kept as a line', () => {
  for (const text of ['plain', '{"broken', '{}', '{"message":1}', '[1]']) {
    const { level, source, message } = parseLogLine(text, 'stdout')
    assert.deepEqual([level, source, message], ['INFO', 'gateway', text])
  }
  assert.equal(parseLogLine('plain', 'stderr').level, 'WARN')
  const strange = parseLogLine('{"time":"never","level":"loud","message":"x"}', 'stdout')
  assert.equal(strange.level, 'INFO')
  assert.ok(!Number.isNaN(Date.parse(strange.timestamp)))
})

test('a failure reason is the engine’s message, without its advice and our folders', () => {
  const line = (level: LogLine['level'], message: string): LogLine => ({
    timestamp: '',
    source: 'gateway',
    level,
    message,
  })
  const lines = [
    line('ERROR', 'an older failure'),
    line(
      'ERROR',
      'Gateway failed to start: Invalid config at /srv/x/home/.openclaw/openclaw.json:\n<root>: Unrecognized key: "bogus" for /srv/engine/x\nRun "openclaw doctor --fix" to repair, then retry.',
    ),
    line('ERROR', 'Run "openclaw doctor --fix" to repair the config, then retry.'),
    line('INFO', 'bye'),
  ]
  assert.equal(
    failureReason(lines, { paths, engineDir: '/srv/engine' }),
    'Gateway failed to start: Invalid config at /home/node/.openclaw/openclaw.json: <root>: Unrecognized key: "bogus" for …/x',
  )
  assert.equal(failureReason([line('INFO', 'bye')], { paths, engineDir: '/srv/engine' }), null)
})

test('the agent’s environment has the given variables, and only what it needs of agentd’s own', () => {
  const own = {
    PATH: '/bin',
    HTTPS_PROXY: 'http://egress:3128',
    AGENTD_CONFIG: '{}',
    SECRETS_KEY: 'x',
    LANG: 'de',
  }
  const sent = { API_KEY: '1', HOME: '/root', HTTPS_PROXY: 'http://mine', OPENCLAW_STATE_DIR: '/', TZ: 'X/Y' }
  const env = agentEnvironment(config, paths, { env: sent }, own)
  assert.deepEqual(
    [env.API_KEY, env.TZ, env.LANG, env.HOME, env.TMPDIR, env.HTTPS_PROXY, env.OPENCLAW_STATE_DIR],
    ['1', 'X/Y', 'de', '/srv/x/home', '/srv/x/tmp', 'http://egress:3128', '/srv/x/home/.openclaw'],
  )
  assert.equal(env.PATH, '/srv/engine/node_modules/.bin:/bin')
  assert.ok(!('AGENTD_CONFIG' in env) && !('SECRETS_KEY' in env))
  const identified = agentEnvironment(config, paths, { env: sent, proxyCredential: 'p-1' }, own)
  assert.equal(identified.HTTPS_PROXY, 'http://agent:p-1@egress:3128/')
  const values = secretValues({ AGENT_NAME: 'Pinnie', OPENCLAW_GATEWAY_TOKEN: 'token', API_KEY: 'key' })
  assert.deepEqual(values, ['token', 'key'])
})

test('a probe reports ready or starting, and stalled if the response never comes or never ends', async (t) => {
  let answer: 200 | 503 | 'none' | 'endless' = 200
  const server = createServer((_req, res) => {
    if (answer === 'none') return
    res.writeHead(answer === 'endless' ? 200 : answer)
    if (answer === 'endless') setInterval(() => res.write('x'.repeat(10_000)), 5).unref()
    else res.end('{}')
  })
  t.after(() => server.closeAllConnections())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  assert.equal(await probe(port), 'ready')
  answer = 503
  assert.equal(await probe(port), 'starting')
  answer = 'none'
  assert.equal(await probe(port), 'stalled')
  answer = 'endless'
  assert.equal(await probe(port), 'stalled')
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  assert.equal(await probe(port), 'silent')
})
