/**
 * A whole Berth in a cluster, installed as docs/kubernetes.md describes. An agent with the real engine lives in it,
 * through an update, until the uninstall.
 */
import assert from 'node:assert/strict'
import { readdir, symlink } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCommands } from '../../../scripts/ci/docs-commands.ts'
import {
  BERTH_IMAGE,
  type Forward,
  forward,
  loadBerthImages,
  makeBase,
  type Outside,
  startOutside,
} from '../../support/cluster-berth.ts'
import { enginesDir, ensureEngines } from '../../support/engines.ts'
import { useFolder } from '../../support/folder.ts'
import { CHART, helm, withoutHelm } from '../../support/helm.ts'
import {
  addresses,
  KUBECONFIG,
  killPrograms,
  kubectl,
  read,
  whyNotKubernetes,
} from '../../support/kubernetes.ts'
import { kuboBinary } from '../../support/kubo.ts'
import { MODEL, MODEL_KEY, type ModelServer, startModel } from '../../support/model.ts'
import { freePort, until } from '../../support/processes.ts'
import { startRegistry, withoutRegistry } from '../../support/registry.ts'
import { type Agent, type Answer, ServiceClient } from '../../support/service-client.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const skip =
  whyNotKubernetes || withoutHelm || withoutRegistry || (kuboBinary ? false : 'needs BERTH_TEST_KUBO')
const NAMESPACE = 'berth'
const AGENTS = 'berth-agents'
const AT_ONCE = { prefer: 'respond-async' }

describe('a Berth in a cluster', { skip }, () => {
  let outside: Outside
  let model: ModelServer
  let registry: Forward
  let client: ServiceClient
  let agent: Agent

  const podOfAgent = () => read(AGENTS, `pod/berth-${agent.agentId}`, '.metadata.uid')
  const namesOf = async (namespace: string, kinds: string) =>
    (await kubectl('--namespace', namespace, 'get', kinds, '--output', 'name')).split('\n').filter(Boolean)

  const nothingIsLeftOf = ({ agentId }: Agent) =>
    until('its objects are gone', async () => {
      const names = await namesOf(AGENTS, 'pods,configmaps,persistentvolumeclaims,networkpolicies')
      return names.every((name) => !name.includes(agentId))
    })

  before(async () => {
    await loadBerthImages({ engines: false })
    ;[outside, model] = await Promise.all([startOutside(), startModel()])
  })
  after(async () => {
    await kubectl('delete', 'namespace', NAMESPACE, AGENTS, '--ignore-not-found', '--wait=false')
    await registry?.close()
    await model?.stop()
    await outside?.stop()
  })

  it('the ten commands of docs/kubernetes.md lead from an empty cluster to an agent', async (t) => {
    const { machine } = await addresses()
    // The registry that the node pulls from. Plain HTTP pushes are possible only to this machine.
    await startRegistry(t, 'none', `${machine}:5000`)
    registry = await forward('127.0.0.1', 0, { host: machine, port: 5000 })
    const dir = await useFolder('berth-chart-', t)
    // Looks like the checkout, but files created in it leave no trace there.
    for (const name of await readdir(ROOT))
      if (name !== '.git') await symlink(join(ROOT, name), join(dir, name))
    await ensureEngines()
    const port = await freePort()
    const { DATABASE_URL, REDIS_URL, IPFS_API_URL, IPFS_PRIVATE_API_URL } = outside.inPods
    const { code, output } = await runCommands(join(ROOT, 'docs/kubernetes.md'), 'cluster', {
      cwd: dir,
      quiet: true,
      env: {
        PATH: [dirname(process.env.BERTH_TEST_HELM ?? ''), process.env.PATH].join(delimiter),
        HOME: dir,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        KUBECONFIG,
        PORT: String(port),
        IMAGE: BERTH_IMAGE.repository,
        ...{ DATABASE_URL, REDIS_URL, IPFS_API_URL, IPFS_PRIVATE_API_URL },
        BERTH_ENGINE_IMAGE: `127.0.0.1:${registry.port}/berth/openclaw:{version}`,
        BERTH_BASE_IMAGE: await makeBase(dir),
        BERTH_ENGINES_DIR: enginesDir,
        BERTH_MODEL_URL: await outside.expose(model.url),
        BERTH_MODEL: MODEL,
        BERTH_MODEL_KEY: MODEL_KEY,
        MODEL_NETWORK: outside.peer.ipBlock.cidr,
      },
    })
    assert.equal(code, 0, output)
    const [, key = ''] = /BERTH_KEY=(ey[\w.-]+)$/m.exec(output) ?? []
    const [made = '{}'] = /^\{.*"gatewayToken".*\}/m.exec(output) ?? []
    agent = JSON.parse(made).agent
    assert.ok(agent?.agentId && key, output)
    client = new ServiceClient(await read(NAMESPACE, 'service/berth-web', '.spec.clusterIP'), port, key)
    await client.running(agent)
  })

  it('an agent in the cluster gets model replies through the egress of the agent proxy', async () => {
    assert.match(await client.chat(agent, 'hello'), /pong: .*hello/)
    assert.ok(model.requests.some((one) => one.text.includes('hello')))
  })

  it('an agent in the cluster has console, files and snapshots', async () => {
    const command = 'id -u; echo kept > workspace/note.txt'
    assert.match(JSON.stringify(await client.ofAgent(agent, '/console/exec', { command })), /1000/)
    assert.match(JSON.stringify(await client.ofAgent(agent, '/files?path=workspace/note.txt')), /kept/)
    const { snapshotCid } = await client.ofAgent(agent, '/snapshots/sync', {})
    assert.match(snapshotCid, /^baf/)
    const { snapshots } = await client.ofAgent(agent, '/snapshots')
    assert.equal(snapshots[0].snapshotCid, snapshotCid)
  })

  it('a terminal in the cluster is kept while the web pod that led to it is replaced', async (t) => {
    const first = client.terminal(agent)
    const { terminal, from } = await first.message('ready')
    first.type('kept=be""fore; sleep 1; echo "$kept and af""ter"\r')
    await first.sees('ter"\r\n')
    const after = String(from + first.bytes)
    const ofWeb = '--selector=app.kubernetes.io/component=web'
    await kubectl('--namespace', NAMESPACE, 'delete', 'pods', ofWeb, '--grace-period=0', '--force')
    await first.closed
    const second = await until('another web pod leads to it', async () => {
      const one = client.terminal(agent, { terminal, after })
      t.after(() => one.raw.terminate())
      return (await Promise.race([one.refused, one.closed])) === undefined && one
    })
    await second.sees('before and after\r\n')
    assert.doesNotMatch(second.shown, /sleep/)
    second.type('exit 7\r')
    assert.equal((await second.message('exit')).code, 7)
  })

  it('an agent in the cluster calls Berth at localhost and uses a model at a private address', async () => {
    const command = 'node skills/@berth/platform/berth.mjs whoami'
    const { stdout, stderr } = await client.ofAgent(agent, '/console/exec', { command })
    assert.equal(JSON.parse(stdout || '{}').agentId, agent.agentId, stderr)
    const { id } = await client.ofAgent(agent, '/tasks', {
      name: 'Morning',
      schedule: { kind: 'cron', expr: '0 9 * * *' },
      payload: { kind: 'agentTurn', message: 'from a task' },
    })
    await client.ofAgent(agent, `/tasks/${id}/run`, {})
    const isAsked = () => model.requests.some((one) => one.text.includes('from a task'))
    await until('the model is asked', isAsked, 240_000)
  })

  it('an agent in the cluster whose pod is deleted starts again with its home', async () => {
    const before = await podOfAgent()
    await kubectl('--namespace', AGENTS, 'delete', 'pod', `berth-${agent.agentId}`)
    await until('it has another pod', async () => (await podOfAgent().catch(() => before)) !== before, 60_000)
    await client.running(agent)
    assert.match(JSON.stringify(await client.ofAgent(agent, '/files?path=workspace/note.txt')), /kept/)
    assert.match(await client.chat(agent, 'again'), /pong: .*again/)
  })

  it('the doctor finds everything that Berth needs', async () => {
    const inside = ['--namespace', NAMESPACE, 'exec', 'deployment/berth-worker', '--']
    // On a busy machine, a check that takes two seconds reports its part as down.
    await until('the doctor finds all well', () => kubectl(...inside, 'node', 'bin/berth.mjs', 'doctor'))
    await until('/readyz agrees', async () => {
      const ready = (await client.call('/readyz')).body
      assert.equal(ready.parts.kubernetes.status, 'ok', JSON.stringify(ready))
      return true
    })
  })

  it('an update of Berth fails no request, and agents keep running', async () => {
    const before = await podOfAgent()
    const failures: unknown[] = []
    let goesOn = true
    let count = 0
    const path = `/v0/agents/${agent.agentId}`
    const note = `${path}/files?path=workspace/note.txt`
    // Through web only, through the agent proxy to agentd, and to the engine.
    const ways: [asked: string, isGood: (answer: Answer) => boolean][] = [
      [path, ({ body }) => body.agent.status === 'running'],
      [note, ({ body }) => JSON.stringify(body).includes('kept')],
      [`${path}/tasks`, ({ body }) => Array.isArray(body.jobs)],
    ]
    const asking = Promise.all(
      ways.map(async ([asked, isGood]) => {
        while (goesOn) {
          const answer = await client.call(asked).catch((error) => error)
          if (answer.status === 200 && isGood(answer)) count++
          else failures.push({ asked, answer })
        }
      }),
    )
    const release = ['berth', CHART, '--namespace', NAMESPACE, '--reuse-values', '--wait', '--timeout', '4m']
    // The node is small, so new agents reserve less of it.
    const changes = `image.tag=${BERTH_IMAGE.next},settings.BERTH_KUBERNETES_REQUEST_PERCENT=10`
    await helm('upgrade', ...release, '--set-string', changes).finally(() => {
      goesOn = false
    })
    await asking
    assert.deepEqual(failures, [])
    assert.ok(count > 20, `${count} requests`)
    for (const role of ['web', 'worker', 'agent-proxy']) {
      const image = await read(
        NAMESPACE,
        `deployment/berth-${role}`,
        '.spec.template.spec.containers[0].image',
      )
      assert.equal(image, `${BERTH_IMAGE.repository}:${BERTH_IMAGE.next}`)
    }
    assert.equal(await podOfAgent(), before)
    assert.match(await client.chat(agent, 'updated'), /pong: .*updated/)
  })

  it('agents survive kills of workers, agent proxies and cluster programs at each step', async () => {
    const inBerth = ['--namespace', NAMESPACE]
    const podsOf = async (role: string) => {
      const pods = ['get', 'pods', `--selector=app.kubernetes.io/component=${role}`, '--output=name']
      return (await kubectl(...inBerth, ...pods)).split('\n')
    }
    const killRole = async (role: string) => {
      const [pod = ''] = await podsOf(role)
      await kubectl(...inBerth, 'delete', pod, '--grace-period=0', '--force')
    }
    const victims = [
      () => killRole('worker'),
      () => killRole('agent-proxy'),
      () => killPrograms('kubelet'),
      () => killPrograms('etcd'),
      () => killPrograms('kube-apiserver'),
    ]
    /** Kills them one after the other while two agents take the step. */
    const underFire = async (steps: Promise<unknown>) => {
      for (const kill of victims) await until('one is killed', () => kill().then(() => true), 120_000)
      await steps
    }
    const pending = (path: string, method: string) =>
      client.call(path, { method, headers: AT_ONCE, ...(method === 'POST' && { json: {} }) })
    const names = ['One', 'Two']
    const made = await Promise.all(names.map((name) => client.call('/v0/agents', { json: { name } })))
    const both: Agent[] = made.map(({ body }) => body.agent)
    await underFire(Promise.all(both.map((one) => client.running(one))))
    for (const one of both) assert.match(await client.chat(one, 'still there'), /pong: .*still there/)
    const restarts = await Promise.all(
      both.map((one) => pending(`/v0/agents/${one.agentId}/restart`, 'POST')),
    )
    await underFire(Promise.all(restarts.map(({ body }) => client.succeeded(body.operation.id))))
    for (const one of both) {
      await client.running(one)
      const pods = await namesOf(AGENTS, 'pods')
      assert.equal(pods.filter((name) => name.includes(one.agentId)).length, 1)
    }
    const deletions = await Promise.all(both.map((one) => pending(`/v0/agents/${one.agentId}`, 'DELETE')))
    await underFire(Promise.all(deletions.map(({ body }) => client.succeeded(body.operation.id))))
    for (const one of both) await nothingIsLeftOf(one)
    await client.running(agent)
  })

  it('a deleted agent leaves nothing behind', async () => {
    await client.call(`/v0/agents/${agent.agentId}`, { method: 'DELETE' })
    await nothingIsLeftOf(agent)
  })

  it('an uninstall leaves only the agents’ namespace', async () => {
    await helm('uninstall', 'berth', '--namespace', NAMESPACE, '--wait')
    const kinds = 'deployments,services,jobs,networkpolicies,poddisruptionbudgets'
    assert.deepEqual(await namesOf(NAMESPACE, kinds), [])
    assert.deepEqual(await namesOf(AGENTS, 'roles,rolebindings'), [])
    // The cluster deletes the policy of a check in the background, once its pod is gone.
    await until('the policy of the network check is deleted', async () =>
      (await namesOf(AGENTS, 'networkpolicies')).every((name) => !name.includes('berth-check')),
    )
    assert.deepEqual((await namesOf(AGENTS, 'networkpolicies,serviceaccounts')).sort(), [
      'networkpolicy.networking.k8s.io/berth-nothing',
      'serviceaccount/berth-agent',
      'serviceaccount/default',
    ])
  })
})
