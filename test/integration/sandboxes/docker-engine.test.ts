/** The Docker driver when the Docker engine, or somebody at it, does something unexpected. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { bridgeOf } from '../../../src/lib/agent-id.ts'
import { negotiate } from '../../../src/sandboxes/docker/engine.ts'
import { DockerRuntime } from '../../../src/sandboxes/docker.ts'
import { AGENT_LABEL, INSTANCE_LABEL } from '../../../src/sandboxes/names.ts'
import { docker } from '../../support/docker.ts'
import { until } from '../../support/processes.ts'
import { cleanUp, newOptions, ownerOf, whyNotDocker } from './docker-subject.ts'
import { failsWith, newAgent, runIn, specOf } from './subject.ts'

test('the driver uses the newest Docker API that both sides know', () => {
  assert.equal(negotiate('1.41', '1.12'), '1.41')
  assert.equal(negotiate('1.47', '1.24'), '1.47')
  assert.equal(negotiate('1.52', '1.44'), '1.47')
  assert.equal(negotiate('1.60', '1.50'), '1.50')
  assert.throws(() => negotiate('1.40', '1.12'), failsWith('internal'))
})

/** A server on loopback that handles every connection with `talk`. */
async function listen(talk: (socket: Socket) => void): Promise<{ host: string; cut(): void; close(): void }> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    talk(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    host: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    close() {
      server.close()
      cut()
    },
  }
}

const away = {
  owner: ownerOf('test'),
  subnets: '10.252.0.0/24',
  egressPort: async () => 3128,
  baseImage: 'none',
  enginesDir: '/nowhere',
}

test('a Docker daemon that is silent, breaks off or is missing is unreachable', {
  timeout: 30_000,
}, async () => {
  const servers = await Promise.all([
    listen(() => {}),
    listen((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"ApiVersion"')),
    listen((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"ApiVersion"')),
    listen((socket) => socket.destroy()),
  ])
  const hosts = [...servers.map(({ host }) => host), 'tcp://127.0.0.1:1', 'unix:///nowhere/docker.sock']
  await Promise.all(
    hosts.map((host) =>
      assert.rejects(new DockerRuntime({ ...away, host }).ping(), failsWith('unreachable'), host),
    ),
  )
  for (const server of servers) server.close()
})

test('an abort by the caller is rethrown unchanged', async () => {
  const server = await listen(() => {})
  const runtime = new DockerRuntime({ ...away, host: server.host })
  const reason = new Error('enough')
  const aborting = new AbortController()
  const listing = runtime.list({ signal: aborting.signal })
  aborting.abort(reason)
  await assert.rejects(listing, (error) => error === reason)
  server.close()
})

describe('Docker driver', { skip: await whyNotDocker() }, () => {
  const foreign: (() => Promise<unknown>)[] = []
  after(async () => {
    for (const remove of foreign) await remove()
    await cleanUp()
  })

  test("third-party objects with an agent's names are neither used nor changed", async () => {
    const runtime = new DockerRuntime(await newOptions())
    const Labels = { 'berth.test': 'containers' }
    const [one, two, three] = [newAgent(), newAgent(), newAgent()]
    await docker.createVolume({ Name: `berth-${one}`, Labels })
    foreign.push(() => docker.getVolume(`berth-${one}`).remove())
    await docker.createNetwork({
      Name: `berth-${two}`,
      Internal: true,
      Labels,
      IPAM: { Config: [{ Subnet: '10.251.0.0/29' }] },
    })
    foreign.push(() => docker.getNetwork(`berth-${two}`).remove())
    const Image = (await docker.listImages({ filters: { reference: ['berth-openclaw'] } }))[0]?.Id
    await docker.createContainer({ name: `berth-${three}`, Image, Labels })
    foreign.push(() => docker.getContainer(`berth-${three}`).remove())
    for (const agentId of [one, two, three]) {
      await assert.rejects(runtime.create(specOf(agentId)), /belongs to somebody else/)
      await runtime.stop(agentId)
      await runtime.remove(agentId, { volume: true })
    }
    await docker.getVolume(`berth-${one}`).inspect()
    await docker.getNetwork(`berth-${two}`).inspect()
    await docker.getContainer(`berth-${three}`).inspect()
  })

  test('a container that a killed worker left half created is adopted and removed', async () => {
    const options = await newOptions()
    const runtime = new DockerRuntime(options)
    const agentId = newAgent()
    // The worker died after the network and before the container.
    await runtime.create(specOf(agentId))
    await docker.getContainer(`berth-${agentId}`).remove()
    assert.deepEqual(await runtime.list(), { sandboxes: [], volumes: [agentId] })
    await runtime.create(specOf(agentId))
    // The worker died after the container and before the network's removal; something else is connected to the network.
    await docker.getContainer(`berth-${agentId}`).remove()
    await runtime.remove(agentId, { volume: true })
    const networks = await docker.listNetworks({
      filters: { label: [`${INSTANCE_LABEL}=${options.owner.instance}`] },
    })
    assert.deepEqual(networks, [])
  })

  test('a network that was removed by hand is recreated at the next start', async () => {
    const runtime = new DockerRuntime(await newOptions())
    const agentId = newAgent()
    await runtime.create(specOf(agentId))
    const first = await runtime.start(agentId)
    await runtime.stop(agentId, { graceMs: 0 })
    await docker.getNetwork(`berth-${agentId}`).remove()
    const again = await runtime.start(agentId)
    assert.equal(again.address, first.address)
    await until('agentd answers', async () => (await runIn(again.address, 'true')).code === 0)
    // The reverse: the container is missing while something else is in its network.
    const Image = (await docker.getContainer(`berth-${agentId}`).inspect()).Image
    const guest = await docker.createContainer({ Image, HostConfig: { NetworkMode: `berth-${agentId}` } })
    foreign.push(() => guest.remove({ force: true }))
    await guest.start()
    await runtime.remove(agentId, { volume: true })
    await assert.rejects(docker.getNetwork(`berth-${agentId}`).inspect(), /no such network/)
  })

  test('a network for another egress port is recreated with the container', async () => {
    const options = await newOptions()
    const agentId = newAgent()
    const Options = { 'com.docker.network.bridge.name': `bth-${agentId}` }
    const Labels = { [INSTANCE_LABEL]: options.owner.instance, [AGENT_LABEL]: agentId }
    await docker.createNetwork({ Name: `berth-${agentId}`, Internal: true, Options, Labels })
    const bridge = async () =>
      (await docker.getNetwork(`berth-${agentId}`).inspect()).Options?.['com.docker.network.bridge.name']
    for (const port of [3128, 20_001]) {
      const runtime = new DockerRuntime({ ...options, egressPort: async () => port })
      await runtime.create(specOf(agentId))
      assert.equal(await bridge(), bridgeOf(agentId, port))
      const { address } = await runtime.start(agentId)
      await until('agentd answers', async () => (await runIn(address, 'true')).code === 0)
      const { Id } = await docker.getContainer(`berth-${agentId}`).inspect()
      await runtime.create(specOf(agentId))
      assert.equal((await docker.getContainer(`berth-${agentId}`).inspect()).Id, Id, 'otherwise it is kept')
    }
  })

  test('no agent is created while the agent proxy is away, which counts as an outage', async () => {
    const egressPort = () => Promise.reject(new Error('ECONNREFUSED'))
    const runtime = new DockerRuntime({ ...(await newOptions()), egressPort })
    await assert.rejects(runtime.create(specOf(newAgent())), failsWith('unreachable'))
  })

  test('agents created at once get one network each, until the subnets are used up', async () => {
    const options = await newOptions({ subnets: '10.250.9.0/26' })
    const [one, two] = [new DockerRuntime(options), new DockerRuntime(options)]
    const agents = Array.from({ length: 8 }, newAgent)
    await Promise.all(agents.map((agentId, i) => (i % 2 ? one : two).create(specOf(agentId))))
    const networks = await docker.listNetworks({
      filters: { label: [`${INSTANCE_LABEL}=${options.owner.instance}`] },
    })
    assert.equal(new Set(networks.map((network) => network.IPAM?.Config?.[0]?.Subnet)).size, 8)
    assert.deepEqual(new Set(networks.map((network) => network.Labels?.[AGENT_LABEL])), new Set(agents))
    await assert.rejects(
      one.create(specOf(newAgent())),
      /BERTH_AGENT_SUBNETS \(10\.250\.9\.0\/26\) is used up/,
    )
  })

  test('container events resume after a lost connection, through versioned paths', async () => {
    const paths: string[] = []
    const relay = await listen((socket) => {
      const upstream = connect('/var/run/docker.sock')
      socket.on('data', (chunk) => paths.push(String(chunk).split(' ', 2)[1] ?? ''))
      socket.pipe(upstream).pipe(socket)
      upstream.on('error', () => socket.destroy())
      socket.on('close', () => upstream.destroy())
    })
    foreign.push(async () => relay.close())
    const runtime = new DockerRuntime(await newOptions({ host: relay.host }))
    const agentId = newAgent()
    await runtime.create(specOf(agentId))
    const listening = new AbortController()
    let seen = 0
    const listener = (async () => {
      for await (const event of runtime.events(listening)) if (event.type === 'started') seen++
    })()
    const seesStarts = () =>
      until('a start is reported', async () => {
        if (seen > 0) return true
        await runtime.stop(agentId, { graceMs: 0 })
        await runtime.start(agentId)
        return false
      })
    await seesStarts()
    relay.cut()
    seen = 0
    await seesStarts()
    listening.abort()
    await listener
    const { ApiVersion, MinAPIVersion } = await docker.version()
    const prefix = `/v${negotiate(ApiVersion, MinAPIVersion)}/`
    const calls = paths.filter((path) => path.startsWith('/') && path !== '/version' && path !== '/info')
    assert(calls.length > 5)
    for (const path of calls) assert(path.startsWith(prefix), path)
    // The configuration that starts an agent must not appear in a log of requests.
    assert(!calls.some((path) => path.includes('AGENTD_CONFIG')))
  })
})
