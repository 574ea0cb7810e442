/** The primary of a Redis or Valkey fails while the queue is in use, and Sentinels promote its replica. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { agentAuthority } from '../../src/agent-proxy/tls/authority.ts'
import { inspectRedis } from '../../src/operations/redis.ts'
import { freePort, type Running, run, until } from '../support/processes.ts'
import { type Sentinels, startSentinels } from '../support/sentinel.ts'
import { isOnPath, type Server, startRedis, withoutRedis } from '../support/servers.ts'
import { type Source, startSource } from '../torture/content.ts'
import { Load } from '../torture/load.ts'
import { Random, replay } from '../torture/seed.ts'
import { tortureTest } from '../torture/suite.ts'
import { printSummary } from '../torture/summary.ts'
import { World } from '../torture/world.ts'

const CONTENTS = 30

const valkey = process.env.BERTH_TEST_VALKEY ?? (isOnPath('valkey-server') ? 'valkey-server' : undefined)

/** One fault for each server: both have the same Sentinel and client. */
const faults = [
  { name: 'Redis', program: 'redis-server', skip: withoutRedis, what: 'SIGKILL' },
  {
    name: 'Valkey',
    program: valkey ?? '',
    skip: valkey ? false : 'valkey-server is not installed, and BERTH_TEST_VALKEY not set',
    // No connection breaks: only the missing answers show that the server is gone.
    what: 'loss of the network',
  },
] as const

for (const { name, program, skip, what } of faults) {
  describe(`${name} behind Sentinels (${replay})`, { skip }, () => {
    const random = new Random(`failover ${name}`)
    let servers: Sentinels
    let world: World
    let source: Source
    before(async () => {
      servers = await startSentinels(program)
      world = await World.start('postgres', { env: { REDIS_URL: servers.url } })
      source = await startSource(random, CONTENTS)
      source.provider.pace(3)
    })
    after(async () => {
      servers?.primary.resume()
      await source?.provider.stop()
      await world?.stop()
      await servers?.stop()
      printSummary()
    })

    tortureTest(
      `a ${what} of the primary of ${name} loses nothing`,
      () => world.output(),
      async () => {
        const load = new Load(world, source, random, [await world.createTenant('one')])
        await load.with({
          what,
          victim: name,
          explained: ['lease expired', 'job lost by the queue'],
          async strike() {
            if (what === 'SIGKILL') await servers.primary.kill()
            else servers.primary.pause()
            const { port } = new URL(servers.replica.url)
            const promoted = async () => (await servers.portOfPrimary()) === Number(port)
            await until('the replica is promoted', promoted)
          },
        })
      },
    )
  })
}

describe('Redis and Sentinel with TLS', { skip: withoutRedis }, () => {
  let dir: string
  let server: Server
  let sentinel: Running
  let port: number
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'berth-redis-tls-'))
    const authority = agentAuthority('the key of an authority, only for this test', 'redis')
    const { key, cert } = authority.leafFor('localhost')
    const files = { 'tls-key-file': key, 'tls-cert-file': cert, 'tls-ca-cert-file': authority.certificatePem }
    for (const [name, content] of Object.entries(files)) await writeFile(join(dir, name), content)
    const tls = {
      ...Object.fromEntries(Object.keys(files).map((name) => [name, join(dir, name)])),
      'tls-auth-clients': 'no',
      'tls-replication': 'yes',
    }
    setDefaultCACertificates([...getCACertificates(), authority.certificatePem])
    const ofServer = await freePort()
    port = await freePort()
    server = await startRedis(dir, { ...tls, 'tls-port': `${ofServer}` })
    const path = join(dir, 'sentinel.conf')
    const settings = {
      ...tls,
      port: '0',
      'tls-port': `${port}`,
      dir,
      'sentinel resolve-hostnames': 'yes',
      'sentinel announce-hostnames': 'yes',
      'sentinel monitor': `main localhost ${ofServer} 1`,
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`)
    await writeFile(path, lines.join(''))
    sentinel = run('redis-server', [path, '--sentinel'])
  })
  after(async () => {
    await sentinel?.end('SIGKILL')
    await server?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  it('rediss+sentinel reaches the Sentinels and the primary through TLS', async () => {
    const url = `rediss+sentinel://localhost:${port}/main`
    await until('the Sentinel answers', () => inspectRedis(url))
    await assert.rejects(inspectRedis(url.replace('localhost', '127.0.0.1')), /unreachable/)
    await assert.rejects(inspectRedis(url.replace('rediss', 'redis')), /unreachable/)
  })
})
