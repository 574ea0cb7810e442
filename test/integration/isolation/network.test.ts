/**
 * The network of an agent in Docker, tested from inside while a whole Berth runs: what it can reach of the machine, of
 * Berth and of other agents. `sandboxes/docker-walls.test.ts` tests the isolation of the container itself.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { createPool } from '../../../src/db/pool.ts'
import { createLogger } from '../../../src/log.ts'
import { DockerRuntime } from '../../../src/sandboxes/docker.ts'
import { postgresUrl } from '../../../src/standalone/postgres.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { freePort, until } from '../../support/processes.ts'
import { type Stack, startStack } from '../../support/stack.ts'
import { cleanUp, newOptions, SUBNETS, whyNotDocker } from '../sandboxes/docker-subject.ts'
import { newAgent, outputIn, runIn, specOf } from '../sandboxes/subject.ts'
import { KNOCK, TUNNEL } from './scripts.ts'

describe('from inside an agent in Docker', { skip: await whyNotDocker() }, () => {
  const [agentId, neighbourId] = [newAgent(), newAgent()]
  let stack: Stack
  let runtime: DockerRuntime
  let address: string
  let neighbour: string
  /** The host's address on the agent's network. */
  let gateway: string
  let egressPort: number

  const script = async (source: string, ...args: string[]) => {
    const quoted = args.map((arg) => `'${arg}'`).join(' ')
    return JSON.parse(await outputIn(address, `node -e "$(cat <<'EOS'\n${source}\nEOS\n)" ${quoted}`))
  }
  const allAre = (value: unknown, found: Record<string, unknown>) =>
    assert.deepEqual(found, Object.fromEntries(Object.keys(found).map((key) => [key, value])))

  before(async () => {
    egressPort = await freePort()
    stack = await startStack({
      kind: 'embedded',
      env: {
        BERTH_RUNTIME: 'docker',
        BERTH_AGENT_SUBNETS: SUBNETS,
        BERTH_EGRESS_PORT: String(egressPort),
        BERTH_AGENT_PROXY_PORT: String(await freePort()),
        OPERATORS_SECRET: 'not-for-agents',
      },
    })
    runtime = new DockerRuntime(await newOptions({ egressPort: async () => egressPort }))
    const start = async (id: string) => {
      await runtime.create(specOf(id))
      const sandbox = await runtime.start(id)
      await until('it answers', async () => (await runIn(sandbox.address, 'true')).code === 0)
      return sandbox.address ?? ''
    }
    address = await start(agentId)
    neighbour = await start(neighbourId)
    // The proxy asks whose address this is. The reconciler leaves the row alone.
    const pool = createPool((await postgresUrl(stack.dataDir)) ?? '', 1, createLogger('test', 'silent'))
    await insertAgentRow(pool, { agentId, workspaceId: uuidv7(), status: 'not_running', address })
    await pool.end()
    gateway = new URL(await outputIn(address, 'echo $HTTP_PROXY')).hostname
    await until('the way out is open', async () => {
      return (await script(KNOCK, `${gateway}:${egressPort}`))[`${gateway}:${egressPort}`] === 'open'
    })
  })
  after(async () => {
    await stack?.stop()
    await runtime?.close()
    await cleanUp()
  })

  it('an agent in Docker reaches only the egress proxy of all ports that Berth listens on', async () => {
    const found: Record<string, string> = await script(
      KNOCK,
      ...[...(await portsOf(stack))].map((port) => `${gateway}:${port}`),
    )
    const { [`${gateway}:${egressPort}`]: egress, ...rest } = found
    assert.equal(egress, 'open')
    assert.ok(Object.keys(rest).length >= 3, 'web, the agent proxy and PostgreSQL at least')
    allAre('closed', rest)
  })

  it('an agent in Docker cannot reach other agents, metadata, other networks or the internet', async () => {
    const targets = [neighbour, '172.17.0.1:22', '169.254.169.254:80', '192.0.2.1:443', '1.1.1.1:53']
    allAre('closed', await script(KNOCK, ...targets))
  })

  it('an agent in Docker cannot use the egress address of another agent', async () => {
    // Docker lets a container reach the host by any of its addresses; the proxy rejects other agents.
    const others = neighbour.replace(/\d+:\d+$/, (end) => String(Number.parseInt(end, 10) - 1))
    const target = `127.0.0.1:${stack.env.PORT}`
    const found = await script(TUNNEL, `http://${others}:${egressPort}`, target)
    assert.match(String(found[target]), /^E[A-Z]+$/)
  })

  it('the egress proxy gives an agent in Docker no private address, whatever the name', async () => {
    const { PORT, BERTH_AGENT_PROXY_PORT } = stack.env
    const database = new URL((await postgresUrl(stack.dataDir)) ?? '').port
    const targets = [
      neighbour,
      address,
      `${gateway}:${egressPort}`,
      `127.0.0.1:${database}`,
      `localhost:${database}`,
      `127.0.0.1:${BERTH_AGENT_PROXY_PORT}`,
      `127.0.0.1:${egressPort}`,
      `[::1]:${database}`,
      `[::ffff:127.0.0.1]:${BERTH_AGENT_PROXY_PORT}`,
      `2130706433:${database}`,
      `0.0.0.0:${PORT}`,
      '169.254.169.254:80',
      '[fd00:ec2::254]:80',
      '10.0.0.1:80',
      '192.168.0.1:80',
      '172.17.0.1:2375',
    ]
    allAre(403, await script(TUNNEL, `http://${gateway}:${egressPort}`, ...targets))
  })

  it('the egress proxy leads an agent in Docker to Berth’s public address', async () => {
    const { PORT } = stack.env
    const targets = [`127.0.0.1:${PORT}`, `localhost:${PORT}`, `agents.localhost:${PORT}`]
    allAre(200, await script(TUNNEL, `http://${gateway}:${egressPort}`, ...targets))
  })

  it('an agent in Docker cannot see the operator’s environment', async () => {
    const all = await outputIn(
      address,
      "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | cut -d= -f1 | sort -u",
    )
    const names = all.split('\n')
    assert.ok(names.includes('HTTP_PROXY'))
    const foreign =
      /^(OPERATORS_SECRET|DATABASE_URL|REDIS_URL|JWT_KEY|SECRETS_KEY|AGENT_PROXY_KEY|BERTH_.*|DOCKER_HOST)$/
    assert.deepEqual(
      names.filter((name) => foreign.test(name)),
      [],
    )
  })
})

/** The TCP ports on which the processes of a stack listen, including PostgreSQL, on any address. */
async function portsOf(stack: Stack): Promise<Set<string>> {
  const { port } = new URL((await postgresUrl(stack.dataDir)) ?? '')
  const { PORT = '', BERTH_AGENT_PROXY_PORT = '', BERTH_EGRESS_PORT = '' } = stack.env
  const known = new Set([port, PORT, BERTH_AGENT_PROXY_PORT, BERTH_EGRESS_PORT])
  // The kernel's list of listeners: nothing that is missing above may listen on all addresses.
  const listening = await readFile('/proc/net/tcp', 'utf8')
  for (const value of known) {
    const hex = Number(value).toString(16).toUpperCase().padStart(4, '0')
    assert.ok(listening.includes(`:${hex} 00000000:0000 0A`), `nothing listens on ${value}`)
    assert.ok(!listening.includes(` 00000000:${hex} 00000000:0000 0A`), `${value} is open on all addresses`)
  }
  return known
}
