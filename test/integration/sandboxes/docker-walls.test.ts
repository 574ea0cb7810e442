/** The isolation of an agent in Docker, seen from inside. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { DockerRuntime } from '../../../src/sandboxes/docker.ts'
import { docker } from '../../support/docker.ts'
import { until } from '../../support/processes.ts'
import { cleanUp, newOptions, whyNotDocker } from './docker-subject.ts'
import { newAgent, outputIn, runIn, specOf } from './subject.ts'

describe('isolation of an agent in Docker', { skip: await whyNotDocker() }, () => {
  const [agentId, neighbour] = [newAgent(), newAgent()]
  let runtime: DockerRuntime
  let address: string | null
  let neighbourAddress: string | null
  const inside = (command: string) => outputIn(address, command)

  before(async () => {
    runtime = new DockerRuntime(await newOptions())
    const start = async (id: string) => {
      await runtime.create(specOf(id))
      const sandbox = await runtime.start(id)
      await until('agentd answers', async () => (await runIn(sandbox.address, 'true')).code === 0)
      return sandbox.address
    }
    address = await start(agentId)
    neighbourAddress = await start(neighbour)
  })
  after(async () => {
    await runtime?.close()
    await cleanUp()
  })

  test('an agent in Docker runs as nobody, without capabilities or a way to gain more', async () => {
    assert.equal(await inside('id -u; id -g; hostname'), `1000\n1000\n${agentId}-0`)
    const status = await inside('cat /proc/self/status')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
      assert.match(status, new RegExp(`^${set}:\\s*0+$`, 'm'))
    }
    assert.match(status, /^NoNewPrivs:\s*1$/m)
    assert.match(status, /^Seccomp:\s*2$/m)
  })

  test('an agent in Docker can write only to its home and /tmp, within limits', async () => {
    await inside('touch ~/mine /tmp/mine')
    const tries =
      'for d in / /etc /opt /opt/agentd /usr /var/tmp /dev /run; do touch $d/mine 2>/dev/null && echo $d; done; true'
    assert.equal(await inside(tries), '')
    assert.equal(await inside('mount | grep " on /tmp " | grep -c nosuid'), '1')
    const full = await runIn(
      address,
      'for i in 1 2; do dd if=/dev/zero of=/tmp/large$i bs=1M count=40 2>&1; done; rm /tmp/large*',
    )
    assert.match(full.output, /No space left/)
  })

  test('an agent in Docker sees no Docker, no host files, and only its own processes', async () => {
    assert.equal(await inside('ls /var/run/docker.sock /run/docker.sock 2>/dev/null; true'), '')
    assert.equal(await inside('cat /proc/1/comm'), 'tini')
    const mounts = await inside("mount | grep '^/dev' | awk '{print $3}' | sort")
    assert.deepEqual(mounts.split('\n'), ['/etc/hostname', '/etc/hosts', '/etc/resolv.conf', '/home/node'])
  })

  test('memory, CPU and process count of an agent in Docker are limited', async () => {
    const { HostConfig, Config } = await docker.getContainer(`berth-${agentId}`).inspect()
    const { memoryBytes, pids } = specOf(agentId).limits
    assert.equal(HostConfig.Memory, memoryBytes)
    assert.equal(HostConfig.MemorySwap, memoryBytes)
    assert.equal(HostConfig.NanoCpus, 1e9)
    assert.equal(HostConfig.PidsLimit, pids)
    assert.equal(HostConfig.RestartPolicy?.Name, 'no')
    assert.equal(HostConfig.LogConfig?.Config?.['max-size'], '5m')
    assert.deepEqual(HostConfig.PortBindings ?? {}, {})
    assert.deepEqual(HostConfig.Binds ?? [], [])
    assert.equal(Config.Hostname, `${agentId}-0`)
    // The agent may start as many processes as it likes; the machine and agentd are unaffected.
    const bomb = 'for i in $(seq 150); do (sleep 20 >/dev/null 2>&1 &); done 2>&1 | head -n 1'
    assert.match((await runIn(address, bomb)).output, /fork/)
    await until('they have ended', async () => (await runtime.stats(agentId)).pids < 30)
    assert.equal((await runIn(address, 'true')).code, 0)
  })

  test('a process that consumes too much memory is killed, and other processes survive', async () => {
    const hog = `node -e 'const a=[];for(;;)a.push(Buffer.alloc(16777216,1))'`
    assert.equal((await runIn(address, hog)).code, 137)
    assert.equal((await runtime.inspect(agentId))?.state, 'running')
  })

  test('an agent in Docker reaches only the proxy and resolves no names', async () => {
    await until('names fail fast', async () => {
      const begin = performance.now()
      assert.notEqual((await runIn(address, 'getent hosts example.com')).code, 0)
      return performance.now() - begin < 5000
    })
    const connects = (host: string, port: number) =>
      runIn(
        address,
        `node -e 'const s=require("net").connect(${port},"${host}");s.on("connect",()=>process.exit(0));s.on("error",()=>process.exit(1));setTimeout(()=>process.exit(2),1500)'`,
      )
    const [host = '', port = ''] = neighbourAddress?.split(':') ?? []
    assert.notEqual((await connects(host, Number(port))).code, 0, 'another agent')
    assert.notEqual((await connects('169.254.169.254', 80)).code, 0, 'the metadata address')
    assert.notEqual((await connects('192.0.2.1', 53)).code, 0, 'the outside')
  })

  test('an agent’s proxy is on the host, and its own loopback bypasses the proxy', async () => {
    const gateway = address?.replace(/\d+:\d+$/, (end) => String(Number(end.split(':')[0]) - 1))
    const asked: string[] = []
    const proxy = createServer((_, response) => response.end('from the outside'))
    // Node requests a tunnel even for http:.
    proxy.on('connect', ({ url = '' }, socket) => {
      asked.push(url)
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      proxy.emit('connection', socket)
    })
    // The address exists before and after the agent runs, so that a proxy can listen on it.
    await runtime.stop(neighbour)
    await new Promise<void>((resolve) => proxy.listen(0, gateway, resolve))
    const { port } = proxy.address() as AddressInfo
    try {
      assert.equal(
        await inside('echo $HTTPS_PROXY $https_proxy $HTTP_PROXY $http_proxy'),
        Array(4).fill(`http://${gateway}:3128`).join(' '),
      )
      const fetches = (url: string) =>
        inside(
          `HTTP_PROXY=http://${gateway}:${port} http_proxy=http://${gateway}:${port} node -e 'fetch("${url}").then((r)=>r.text()).then(console.log)'`,
        )
      assert.equal(await fetches('http://model.example/v1'), 'from the outside')
      assert.match(await fetches('http://127.0.0.1:7700/'), /"code":0/)
      assert.deepEqual(asked, ['model.example:80'])
    } finally {
      proxy.closeAllConnections()
      await new Promise((resolve) => proxy.close(resolve))
    }
  })
})
