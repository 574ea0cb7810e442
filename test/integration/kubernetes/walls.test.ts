/** The network and the rights of an agent in a cluster, seen from inside, starting with its first instruction. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { type KubernetesOptions, KubernetesRuntime } from '../../../src/sandboxes/kubernetes.ts'
import { nameOf } from '../../../src/sandboxes/names.ts'
import { addresses, kubectl, whyNotKubernetes } from '../../support/kubernetes.ts'
import { until } from '../../support/processes.ts'
import { newAgent, outputIn, runIn, specOf } from '../sandboxes/subject.ts'
import { type Ground, makeGround, newOptions } from './subject.ts'

/**
 * Node runs it before the agent's own first line: it probes each target for some seconds and records those that accept.
 */
const KNOCK = `
import { connect } from 'node:net'
import { appendFileSync, writeFileSync } from 'node:fs'
const end = Date.now() + 3000
const knock = ([host, port]) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 500 })
  socket.on('connect', () => { appendFileSync('/home/node/reached', host + ' ' + port + '\\n'); socket.destroy(); resolve() })
  for (const event of ['error', 'timeout']) socket.on(event, () => { socket.destroy(); setTimeout(resolve, 50) })
})
const targets = JSON.parse(process.env.KNOCK_AT)
await Promise.all(targets.map(async (target) => { while (Date.now() < end) await knock(target) }))
writeFileSync('/home/node/knocked', 'yes')
`

describe('isolation of an agent in a cluster', { skip: whyNotKubernetes }, () => {
  const [agentId, neighbour] = [newAgent(), newAgent()]
  let ground: Ground
  let runtime: KubernetesRuntime
  let owner: KubernetesOptions['owner']
  let egress: Server
  let other: Server
  let address: string | null
  let forbidden: [host: string, port: number][]
  const inside = (command: string) => outputIn(address, command)

  before(async () => {
    ground = await makeGround()
    const listen = async () => {
      const server = createServer((_, response) => response.end('from the outside'))
      await new Promise<void>((resolve) => server.listen(0, resolve))
      return { server, port: (server.address() as AddressInfo).port }
    }
    const [out, closed] = [await listen(), await listen()]
    egress = out.server
    other = closed.server
    const of = await addresses()
    const options = await newOptions(ground)
    owner = options.owner
    const egressUrl = `http://${of.machine}:${out.port}`
    runtime = new KubernetesRuntime({ ...options, pods: { ...options.pods, egressUrl } })
    const start = async (id: string, env: Record<string, string> = {}) => {
      await runtime.create(specOf(id, { env }))
      const sandbox = await runtime.start(id)
      await until('agentd answers', async () => (await runIn(sandbox.address, 'true')).code === 0)
      return sandbox.address
    }
    const [host = ''] = (await start(neighbour))?.split(':') ?? []
    forbidden = [
      [host, AGENTD_PORT],
      [of.node, 6443],
      [of.node, 10250],
      [of.api, 443],
      [of.dns, 53],
      [of.machine, closed.port],
      ['169.254.169.254', 80],
    ]
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(KNOCK)}`
    address = await start(agentId, { NODE_OPTIONS, KNOCK_AT: JSON.stringify(forbidden) })
  })
  after(async () => {
    egress?.close()
    other?.close()
    await runtime?.close()
    await ground?.remove()
  })

  it('an agent reaches nothing in the first seconds of its first and later starts', async () => {
    for (let start = 0; start < 3; start++) {
      assert.equal(await inside('cat ~/knocked'), 'yes')
      assert.equal(await inside('cat ~/reached 2>/dev/null; rm ~/knocked; true'), '')
      await runtime.stop(agentId)
      const again = await runtime.start(agentId)
      address = again.address
      await until('agentd answers', async () => (await runIn(address, 'true')).code === 0)
    }
  })

  it('an agent reaches the agent proxy’s egress, and the internet only through it', async () => {
    const fetched = `node -e 'require("http").get(process.env.HTTP_PROXY, (r) => r.pipe(process.stdout))'`
    assert.equal(await inside(`unset NODE_OPTIONS; ${fetched}`), 'from the outside')
    await until('names fail fast', async () => {
      const begin = performance.now()
      assert.notEqual((await runIn(address, 'getent hosts example.com')).code, 0)
      return performance.now() - begin < 5000
    })
  })

  it('an agent runs as nobody, without capabilities, a token or a way to gain more', async () => {
    assert.equal(await inside('id -u; id -g; hostname'), `1000\n1000\n${agentId}-0`)
    const status = await inside('cat /proc/self/status')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\\s*0+$`, 'm'))
    assert.match(status, /^NoNewPrivs:\s*1$/m)
    assert.match(status, /^Seccomp:\s*2$/m)
    assert.notEqual((await runIn(address, 'unshare -U true')).code, 0)
    assert.equal(await inside('ls /var/run/secrets /run/secrets 2>/dev/null; true'), '')
    assert.equal(await inside('cat /proc/1/comm'), 'tini')
  })

  it('an agent can write only to its home and /tmp, within limits', async () => {
    await inside('touch ~/mine /tmp/mine')
    const tries =
      'for d in / /etc /opt /opt/agentd /usr /var/tmp /run; do touch $d/mine 2>/dev/null && echo $d; done; true'
    assert.equal(await inside(tries), '')
    const full = await runIn(
      address,
      'for i in 1 2; do dd if=/dev/zero of=/tmp/large$i bs=1M count=40 2>&1; done; rm /tmp/large*',
    )
    assert.match(full.output, /No space left/)
  })

  it('memory and CPU of an agent are limited and partly reserved', async () => {
    const path = '--output=jsonpath={.spec.containers[0].resources}'
    const text = await kubectl('--namespace', ground.namespace, 'get', 'pod', nameOf(agentId), path)
    assert.deepEqual(JSON.parse(text), {
      limits: { cpu: '1', 'ephemeral-storage': '256Mi', memory: String(256 * 1024 ** 2) },
      requests: { cpu: '250m', 'ephemeral-storage': '16Mi', memory: String(64 * 1024 ** 2) },
    })
  })

  it('no object that the cluster keeps of an agent has a secret', async () => {
    const record = await kubectl(
      '--namespace',
      ground.namespace,
      'get',
      'configmap',
      nameOf(agentId),
      '--output=json',
    )
    const { spec } = JSON.parse(JSON.parse(record).data.pod)
    const names = spec.containers[0].env.map(({ name }: { name: string }) => name)
    assert.deepEqual(names.sort(), [
      'AGENTD_CONFIG',
      'HOME',
      'HTTPS_PROXY',
      'HTTP_PROXY',
      'KNOCK_AT',
      'NODE_OPTIONS',
      'NODE_USE_ENV_PROXY',
      'NO_PROXY',
      'http_proxy',
      'https_proxy',
      'no_proxy',
    ])
  })
  it('an agent’s connection ends when the policy that allowed it changes', async () => {
    const { machine } = await addresses()
    const port = (server: Server) => (server.address() as AddressInfo).port
    const hold = `require("net").connect(${port(egress)}, "${machine}", () => console.log("open"))`
    await inside(
      `unset NODE_OPTIONS; nohup node -e '${hold}' > ~/held 2>&1 & until grep -q open ~/held; do :; done`,
    )
    const connections = () =>
      new Promise<number>((resolve) => egress.getConnections((_, count) => resolve(count)))
    await until('its connection exists', async () => (await connections()) === 1)

    const options = await newOptions(ground, { owner })
    const egressUrl = `http://${machine}:${port(other)}`
    const changed = new KubernetesRuntime({ ...options, pods: { ...options.pods, egressUrl } })
    await changed.create(specOf(agentId))
    address = (await changed.start(agentId)).address
    await until('agentd answers', async () => (await runIn(address, 'true')).code === 0)
    await until('its connection is closed', async () => (await connections()) === 0)
    const knock = (target: Server) =>
      runIn(
        address,
        `node -e 'require("net").connect({ host: "${machine}", port: ${port(target)}, timeout: 1000 }).on("connect", () => process.exit(0)).on("error", () => process.exit(1)).on("timeout", () => process.exit(1))'`,
      )
    assert.equal((await knock(other)).code, 0)
    assert.equal((await knock(egress)).code, 1)
    await changed.close()
  })
})
