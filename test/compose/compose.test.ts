/**
 * The stack of docker-compose.yml as an operator uses it: in a clean clone, on its own Docker engine. The steps of
 * docs/operations.md come first. Then an agent lives in the stack, the engine is killed, a second stack runs alongside,
 * and everything is removed. `scripts/ci/compose.sh` creates the clone and the engine.
 */
import assert from 'node:assert/strict'
import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { checkServerIdentity, connect } from 'node:tls'
import { runCommands } from '../../scripts/ci/docs-commands.ts'
import { type ModelServer, startModel } from '../support/model.ts'
import { until } from '../support/processes.ts'
import { ComposeStack, command, docker } from './stack.ts'

const clone = process.env.BERTH_TEST_CLONE ?? ''
assert.ok(clone, 'BERTH_TEST_CLONE is the folder of the clone: scripts/ci/compose.sh sets it')

const WAIT = { prefer: 'wait=240' }
const stack = new ComposeStack({ clone, project: 'berth', port: 3000 })
const second = new ComposeStack({
  clone,
  project: 'berth-two',
  port: 3001,
  env: {
    COMPOSE_PROFILES: 'tls',
    // The disk helper belongs to the first stack: here the disks of agents are only measured.
    BERTH_DISKS_SOCKET: '',
    HTTP_PORT: '8080',
    HTTPS_PORT: '8443',
    PUBLIC_URL: 'https://api.berth.test',
    BERTH_GATEWAY_DOMAIN: 'gateway.berth.test',
    BERTH_AGENT_DOMAIN: 'agents.berth.test',
    BERTH_APP_DOMAIN: 'apps.berth.test',
    BERTH_TRUST_PROXY: 'caddy',
    CADDY_GLOBAL_OPTIONS: 'local_certs',
  },
})

interface Agent {
  agentId: string
  gatewayToken: string
}

let model: ModelServer
let key: string
let agent: Agent

before(async () => {
  model = await startModel()
  const own = {
    BERTH_DISKS_DIR: join(clone, 'disks'),
    BERTH_DISKS_MB: 1024,
    BERTH_AGENT_LIMITS: 'diskMb=128',
    // `up --wait` waits for the first health check, which Docker runs one interval after a start.
    HEALTH_INTERVAL: '5s',
  }
  const settings = Object.entries({ ...model.env, ...own }).map(([name, value]) => `${name}=${value}\n`)
  await appendFile(join(clone, '.env'), settings.join(''))
})
after(() => model.stop())

/** A chat turn through the agent's host; a request that gets 503 is retried. */
async function chat(): Promise<string> {
  const answer = await until('the agent is ready', async () => {
    const one = await stack.call('/v1/chat/completions', {
      host: `${agent.agentId}.agents.localhost`,
      key: agent.gatewayToken,
      json: { model: 'openclaw/default', messages: [{ role: 'user', content: 'hello' }] },
    })
    return one.status !== 503 && one
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.body.choices[0].message.content
}

const post = async (path: string, json: unknown) => {
  const answer = await stack.call(`/v0/agents/${agent.agentId}${path}`, { key, json, headers: WAIT })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

describe('a stack in a clean clone', () => {
  it('a stack in a clean clone runs the commands of docs/operations.md, from top to bottom', async () => {
    const { code, output } = await runCommands(join(clone, 'docs/operations.md'), 'compose', {
      cwd: clone,
      quiet: true,
    })
    assert.equal(code, 0, output.slice(-8000))
    await stack.untilHealthy()
    key = (await stack.berth('web', 'keys', 'create')).trim()
  })

  it('a stack in a clean clone runs compiled programs', async () => {
    const tell = "process.once('exit', () => console.log(process.moduleLoadList.join()))"
    const told = ['node', `--import=data:text/javascript,${encodeURIComponent(tell)}`]
    for (const program of [
      ['src/main.ts', 'compile', 'image'],
      ['bin/berth.mjs', 'keys', '--help'],
    ]) {
      const modules = await stack.compose('exec', '-T', 'web', ...told, ...program)
      assert.match(modules, /NativeModule/)
      assert.doesNotMatch(modules, /amaro/, 'the type stripper is not loaded')
    }
  })

  it('a stack in a clean clone creates an agent that responds at its host', async () => {
    const made = await stack.call('/v0/agents', { key, json: { name: 'Compose' }, headers: WAIT })
    assert.equal(made.status, 201, made.text)
    agent = made.body.agent
    await until(
      'the agent runs',
      async () => {
        const now = (await stack.call(`/v0/agents/${agent.agentId}`, { key })).body.agent
        assert.notEqual(now.status, 'not_running', now.statusReason)
        return now.status === 'running'
      },
      300_000,
    )
    assert.match(await chat(), /pong: .*hello/)
  })

  it('a stack in a clean clone resets an agent on a full disk, and restarts it after a cleanup', async () => {
    await post('/console/exec', { command: 'echo before > workspace/note.txt' })
    const { snapshotCid } = await post('/snapshots/sync', {})
    assert.match(snapshotCid, /^baf/)
    const full = await post('/console/exec', {
      command: 'for i in 1 2 3; do head -c 60000000 /dev/urandom >~/big$i; done; echo more >~/more',
    })
    assert.match(full.stderr, /Disk quota exceeded/)
    const { body } = await stack.call(`/v0/agents/${agent.agentId}`, { key })
    assert.equal(body.disk.limitBytes, 128 * 1_048_576)
    assert.equal(body.disk.hardLimit, true)
    await post('/console/exec', { command: 'echo after > workspace/note.txt || rm workspace/note.txt' })
    await post('/snapshots/reset', { snapshotCid })
    assert.equal((await post('/console/exec', { command: 'cat workspace/note.txt' })).stdout, 'before\n')
    const restart = { key, json: {}, headers: WAIT }
    const refused = await stack.call(`/v0/agents/${agent.agentId}/restart`, restart)
    assert.equal(refused.status, 500, refused.text)
    const { agent: stopped } = (await stack.call(`/v0/agents/${agent.agentId}`, { key })).body
    assert.match(stopped.statusReason, /^disk full: /)
    await post('/console/exec', { command: 'rm ~/big*' })
    await post('/restart', {})
    assert.match(await chat(), /pong: .*hello/)
  })

  it("a stack in a clean clone suspends an agent's engine during a backup", async () => {
    const said = await stack.compose('run', '--rm', '--user', '0:0', 'berth', 'backup', '/backup')
    assert.match(said, /1 home\n/)
    assert.doesNotMatch(said, /was not suspended/)
    assert.match(await chat(), /pong: .*hello/, 'the engine is running again')
  })

  it('a stack in a clean clone accepts an upload, and serves it at the gateway', async () => {
    const form = new FormData()
    form.set('network', 'public')
    form.set('file', new Blob(['in a stack']), 'note.txt')
    const uploaded = await fetch(`http://127.0.0.1:${stack.port}/v3/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    })
    assert.equal(uploaded.status, 200)
    const { data } = (await uploaded.json()) as { data: { cid: string } }
    const served = await stack.call(`/ipfs/${data.cid}`, { host: 'default.gateway.localhost' })
    assert.deepEqual([served.status, served.text], [200, 'in a stack'])
  })

  it('a stack in a clean clone listens only on loopback and on agent networks', async () => {
    const lines = (await command('ss', ['-Hltn'])).split('\n')
    const addresses = lines.map((line) => line.trim().split(/\s+/)[3]?.replace(/:\d+$/, '') ?? '')
    const elsewhere = addresses.filter((one) => !/^(127\.|\[::1\]$|10\.231\.)/.test(one))
    assert.deepEqual(elsewhere, [], lines.join('\n'))
  })

  it('a stack in a clean clone reports a wrong group for the Docker socket', async () => {
    const env = { DOCKER_GID: '64999', HEALTH_INTERVAL: '2s', HEALTH_START_PERIOD: '1s' }
    const wrong = new ComposeStack({ clone, project: 'berth', port: 3000, env })
    try {
      await wrong.compose('up', '--detach', '--no-deps', 'worker')
      const isUnhealthy = async () => {
        const { status, output } = await stack.health('worker')
        return status === 'unhealthy' && /^docker: /m.test(output ?? '')
      }
      await until('the worker is unhealthy because of Docker', isUnhealthy, 240_000)
      const said = await stack.berth('worker', 'doctor').catch(({ message }: Error) => message)
      assert.match(said, /DOCKER_GID/)
      await until('web reports that Docker is down', async () => {
        const { body } = await stack.call('/readyz')
        return body.parts.docker.status === 'down'
      })
    } finally {
      await stack.compose('up', '--detach', '--wait', 'worker')
    }
  })

  it('a stack in a clean clone restarts with its agent after the Docker engine is killed', async () => {
    const engine = Number(await readFile('/run/docker.pid', 'utf8'))
    process.kill(engine, 'SIGKILL')
    await until('the engine is a new process', async () => {
      const now = Number(await readFile('/run/docker.pid', 'utf8'))
      return now !== engine && (await docker('ps')).length > 0
    })
    await stack.untilHealthy()
    await until('the agent responds', chat, 300_000)
  })
})

describe('a second stack on the same engine, behind TLS', () => {
  /** The certificate that Caddy presents for a name. */
  function certificateOf(servername: string): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port: 8443, servername, rejectUnauthorized: false })
      socket.once('secureConnect', () => {
        const mismatch = checkServerIdentity(servername, socket.getPeerCertificate())
        socket.destroy()
        resolve(mismatch ? mismatch.message : 'valid')
      })
      socket.once('error', (error) => resolve(error.message))
    })
  }

  it('a second stack behind TLS starts with another project name and port', async () => {
    await second.compose('up', '--detach', '--build', '--wait')
    await second.berth('web', 'workspaces', 'create', 'default', '--plan', 'unlimited')
    await until('its worker reaches Docker, and its own agent proxy', async () => {
      const { parts } = (await second.call('/readyz')).body
      return parts.docker.status === 'ok' && parts.host.status === 'ok'
    })
  })

  it('a second stack behind TLS has certificates only for the names that it serves', async () => {
    await until('the API has one', async () => (await certificateOf('api.berth.test')) === 'valid')
    assert.equal(await certificateOf('default.gateway.berth.test'), 'valid')
    assert.notEqual(await certificateOf('nobody.gateway.berth.test'), 'valid')
    assert.notEqual(await certificateOf('example.org'), 'valid')
  })

  it('a second stack behind TLS is removed without a trace, and the first one keeps running', async () => {
    await second.compose('down', '--volumes', '--rmi', 'local')
    for (const kind of ['container', 'volume', 'network'])
      assert.deepEqual(
        await docker(kind, 'ls', '--quiet', '--filter', `label=com.docker.compose.project=${second.project}`),
        [],
      )
    assert.match(await chat(), /pong: .*hello/)
  })
})

describe('the stack', () => {
  it('the stack is removed without a trace', async () => {
    await stack.call(`/v0/agents/${agent.agentId}`, { method: 'DELETE', key, headers: WAIT })
    await until('nothing is left of the agent', async () => {
      const volumes = await docker('volume', 'ls', '--quiet', '--filter', `name=berth-${agent.agentId}`)
      const networks = await docker('network', 'ls', '--quiet', '--filter', `name=berth-${agent.agentId}`)
      return volumes.length + networks.length === 0
    })
    await stack.compose('down', '--volumes', '--rmi', 'local')
    assert.deepEqual(await docker('ps', '--all', '--quiet'), [])
    assert.deepEqual(await docker('volume', 'ls', '--quiet'), [])
    const networks = await docker('network', 'ls', '--format', '{{.Name}}')
    assert.deepEqual(networks.sort(), ['bridge', 'host', 'none'])
    const images = await docker('images', '--format', '{{.Repository}}')
    assert.deepEqual(
      images.filter((name) => name === 'berth'),
      [],
    )
  })
})
