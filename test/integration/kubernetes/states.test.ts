/**
 * The states of an agent in a cluster (evicted, drained, out of memory, without an image), and how its row reports
 * them.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { SandboxError } from '../../../src/errors.ts'
import { type KubernetesOptions, KubernetesRuntime } from '../../../src/sandboxes/kubernetes.ts'
import { nameOf } from '../../../src/sandboxes/names.ts'
import type { SandboxEvent } from '../../../src/sandboxes/port.ts'
import {
  apply,
  BUSYBOX,
  killPrograms,
  kubectl,
  read,
  signalProgram,
  whyNotKubernetes,
} from '../../support/kubernetes.ts'
import { until } from '../../support/processes.ts'
import { newAgent, outputIn, runIn, specOf } from '../sandboxes/subject.ts'
import { BACK_MS, type Ground, makeGround, newOptions } from './subject.ts'

describe('an agent in a cluster', { skip: whyNotKubernetes, concurrency: 3 }, () => {
  let ground: Ground
  let options: KubernetesOptions
  let runtime: KubernetesRuntime
  before(async () => {
    ground = await makeGround()
    options = await newOptions(ground)
    runtime = new KubernetesRuntime(options)
  })
  after(async () => {
    await runtime?.close()
    await ground?.remove()
  })

  const inNamespace = (...args: string[]) => kubectl('--namespace', ground.namespace, ...args)
  const running = async () => {
    const agentId = newAgent()
    await runtime.create(specOf(agentId))
    const sandbox = await runtime.start(agentId)
    await until('agentd answers', async () => (await runIn(sandbox.address, 'true')).code === 0)
    return { ...sandbox, agentId }
  }
  const exited = (agentId: string) =>
    until('it is exited', async () => {
      const sandbox = await runtime.inspect(agentId)
      return sandbox?.state === 'exited' && sandbox
    })
  /** The error of a start in a cluster that is configured otherwise. */
  const failureOf = async (
    changes: Partial<KubernetesOptions>,
    pods: Partial<KubernetesOptions['pods']> = {},
  ) => {
    const other = new KubernetesRuntime({
      ...options,
      ...changes,
      pods: { ...options.pods, ...pods },
    })
    const agentId = newAgent()
    await other.create(specOf(agentId))
    // A slow cluster is unreachable at first; a worker would retry the start as well.
    const error = await until('it reports the reason', async () => {
      const error = await other.start(agentId).then(
        () => null,
        (error) => error,
      )
      assert(error instanceof SandboxError, String(error))
      return error.code !== 'unreachable' && error
    })
    await other.remove(agentId, { volume: true })
    return error
  }

  it('an agent whose image cannot be pulled is no_image, and the error names the image', async () => {
    // A registry that refuses connections: looking one up by name may take minutes, depending on the network's DNS.
    const error = await failureOf({}, { image: '127.0.0.1:1/nowhere:{version}' })
    assert.equal(error.code, 'no_image', error.message)
    assert.match(error.message, /127\.0\.0\.1:1\/nowhere:2026\.1\.1 cannot be pulled/)
  })

  it('an agent that no node accepts is no_room, with the cluster’s message', async () => {
    const error = await failureOf(
      { startMs: 8000 },
      { template: { serviceAccountName: 'berth-agent', nodeSelector: { disk: 'golden' } } },
    )
    assert.equal(error.code, 'no_room')
    assert.match(error.message, /no node of the cluster accepts the agent: 0\/1 nodes are available/)
  })

  it('an agent whose claim cannot be bound is no_room', async () => {
    const error = await failureOf({ startMs: 8000, storageClass: 'nowhere' })
    assert.equal(error.code, 'no_room')
    assert.match(error.message, /persistentvolumeclaim|PersistentVolumeClaim/)
  })

  it('an agent drained with its node is exited, and starts again with its home', async () => {
    const { agentId, address } = await running()
    await outputIn(address, 'echo kept > ~/note')
    const uid = await inNamespace('get', 'pod', nameOf(agentId), '--output=jsonpath={.metadata.uid}')
    // `kubectl drain` evicts each pod that it does not refuse to move.
    const refused = await kubectl(
      'drain',
      'node',
      '--dry-run=server',
      `--pod-selector=berth.agent=${agentId}`,
      '--delete-emptydir-data',
    )
    assert.match(refused, new RegExp(`evicting pod ${ground.namespace}/${nameOf(agentId)}`))
    await inNamespace('delete', 'pod', nameOf(agentId))
    assert.deepEqual(await runtime.inspect(agentId), {
      agentId,
      state: 'exited',
      engineVersion: specOf(agentId).engineVersion,
      address: null,
      exitCode: null,
      oomKilled: false,
      cause: 'its pod was deleted, by a drain of its node for example',
      startedAt: null,
    })
    const again = await runtime.start(agentId)
    await until('agentd answers', async () => (await runIn(again.address, 'true')).code === 0)
    assert.equal(await outputIn(again.address, 'cat ~/note'), 'kept')
    assert.notEqual(
      await inNamespace('get', 'pod', nameOf(agentId), '--output=jsonpath={.metadata.uid}'),
      uid,
    )
  })

  it('an agent killed for lack of memory reports it', async () => {
    const { agentId, address } = await running()
    const hog = `node -e 'const a=[];for(;;)a.push(Buffer.alloc(16777216,1))'`
    assert.notEqual((await runIn(address, hog)).code, 0)
    await runIn(address, 'kill -9 $PPID').catch(() => {})
    assert.equal((await exited(agentId)).oomKilled, true)
  })

  it('an agent that the cluster ends reports the reason', async () => {
    const { agentId } = await running()
    await inNamespace('patch', 'pod', nameOf(agentId), '--patch', '{"spec":{"activeDeadlineSeconds":1}}')
    const { cause } = await exited(agentId)
    assert.match(
      cause ?? '',
      /^DeadlineExceeded: Pod was active on the node longer than the specified deadline/,
    )
  })

  it('a foreign pod with an agent’s name is left alone', async () => {
    const agentId = newAgent()
    const metadata = { name: nameOf(agentId), namespace: ground.namespace }
    const spec = {
      nodeSelector: { disk: 'golden' },
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'other',
          image: BUSYBOX,
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    }
    await apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec })
    await runtime.create(specOf(agentId))
    await assert.rejects(runtime.start(agentId), /the pod .* belongs to somebody else/)
    await runtime.remove(agentId, { volume: true })
    await inNamespace('get', 'pod', nameOf(agentId))
  })

  it('a namespace whose quota is used up is no_room, and reports it', async () => {
    const other = await makeGround()
    try {
      const quota = { hard: { pods: '0' } }
      const metadata = { name: 'none', namespace: other.namespace }
      await apply({ apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: quota })
      const { cluster } = await newOptions(other)
      await until(
        'the cluster counts it',
        async () => (await read(other.namespace, 'resourcequota/none', '.status.hard.pods')) === '0',
      )
      const error = await failureOf({ cluster })
      assert.equal(error.code, 'no_room')
      assert.match(error.message, /the quota of the cluster is used up.*exceeded quota: none/)
    } finally {
      await other.remove()
    }
  })

  it('concurrent workers learn that agents are isolated here', async () => {
    const again = new KubernetesRuntime(options)
    assert.deepEqual(await Promise.all([runtime.findObstacle(), again.findObstacle()]), [null, null])
  })
})

describe('a driver whose API server restarts', { skip: whyNotKubernetes }, () => {
  it('agents start and events arrive while etcd and the API server are killed', async () => {
    const ground = await makeGround()
    const runtime = new KubernetesRuntime(await newOptions(ground))
    const listening = new AbortController()
    const seen: SandboxEvent[] = []
    const listener = (async () => {
      for await (const event of runtime.events(listening)) seen.push(event)
    })()
    try {
      const agentId = newAgent()
      await runtime.create(specOf(agentId))
      // The current attempt may be lost; the next one resumes from what exists.
      const starting = runtime.start(agentId).catch(() => {})
      await killPrograms('kube-apiserver', 'etcd')
      await starting
      const sandbox = await until('it starts', () => runtime.start(agentId), BACK_MS)
      assert.equal(sandbox.state, 'running')
      const isTold = (type: string) => () =>
        seen.some((event) => event.agentId === agentId && event.type === type)
      await until('its start is reported', isTold('started'), BACK_MS)
      await killPrograms('kube-apiserver')
      await until('it is removed', () => runtime.remove(agentId, { volume: true }).then(() => true), BACK_MS)
      await until('its removal is reported', isTold('removed'), BACK_MS)
    } finally {
      listening.abort()
      await listener
      await ground.remove()
    }
  })
  it('events during a disconnection are reported later, even if the API server forgot them', async () => {
    const ground = await makeGround()
    const path = await makeBreakable(ground)
    const runtime = new KubernetesRuntime(await newOptions(ground))
    const listening = new AbortController()
    const seen: SandboxEvent[] = []
    const listener = (async () => {
      for await (const event of runtime.events(listening)) seen.push(event)
    })()
    const told = (agentId: string, type: string) =>
      until(
        `${type} is told`,
        () => seen.some((event) => event.agentId === agentId && event.type === type),
        BACK_MS,
      )
    try {
      const agentId = newAgent()
      await runtime.create(specOf(agentId))
      await runtime.start(agentId)
      await told(agentId, 'started')
      path.cut()
      const objects = ['pod', 'configmap'].map((kind) => `${kind}/${nameOf(agentId)}`)
      await kubectl('--namespace', ground.namespace, 'delete', '--grace-period=1', ...objects)
      // A new API server knows nothing of earlier events: 410.
      await killPrograms('kube-apiserver')
      await until('it is back', () => kubectl('get', '--raw', '/readyz').then(Boolean), BACK_MS)
      assert.deepEqual(seen.slice(1), [])
      path.mend()
      await told(agentId, 'exited')
      await told(agentId, 'removed')
    } finally {
      listening.abort()
      await listener
      path.cut()
      await ground.remove()
    }
  })
})

describe('an agent whose node is lost', { skip: whyNotKubernetes }, () => {
  it('an agent is not started elsewhere before the cluster knows that it has ended', async () => {
    const ground = await makeGround()
    const runtime = new KubernetesRuntime(await newOptions(ground))
    const taint = ['taint', 'nodes', 'node', 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute']
    const agentId = newAgent()
    const inNamespace = (...args: string[]) => kubectl('--namespace', ground.namespace, ...args)
    try {
      await runtime.create(specOf(agentId))
      const { address } = await runtime.start(agentId)
      await until('agentd answers', async () => (await runIn(address, 'echo kept > ~/note')).code === 0)
      const pods = () => inNamespace('get', 'pods', `--selector=berth.agent=${agentId}`, '--output=name')
      await signalProgram('STOP', 'kubelet')
      await assert.rejects(runtime.stop(agentId, { graceMs: 1000 }), /it may be lost/)
      assert.equal(await pods(), `pod/${nameOf(agentId)}`)
      // Like an operator who knows that the machine is off.
      await kubectl(...taint)
      await until('the cluster gives the pod up', async () => (await pods()) === '', 180_000)
      assert.equal((await runtime.inspect(agentId))?.state, 'exited')
    } finally {
      await signalProgram('CONT', 'kubelet')
      await kubectl(...taint.slice(0, 3), 'node.kubernetes.io/out-of-service-').catch(() => {})
    }
    const again = await until('it starts', () => runtime.start(agentId), BACK_MS)
    await until(
      'its home is kept',
      async () => (await runIn(again.address, 'cat ~/note')).output === 'kept\n',
    )
    await runtime.close()
    await ground.remove()
  })
})

/** Leads the kubeconfig of a namespace through a TCP proxy that can be cut. */
async function makeBreakable({ kubeconfig }: Ground) {
  const config = JSON.parse(await readFile(kubeconfig, 'utf8')) as {
    clusters: { cluster: Record<string, string> }[]
  }
  const { cluster } = config.clusters[0] as { cluster: Record<string, string> }
  const { hostname, port } = new URL(cluster.server ?? '')
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((socket) => {
    const other = connect(Number(port), hostname)
    for (const [from, to] of [
      [socket, other],
      [other, socket],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => {}).on('close', () => to.destroy())
    }
    if (isCut) socket.destroy()
  })
  server.unref().listen(0, '127.0.0.1')
  await once(server, 'listening')
  cluster.server = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  cluster['tls-server-name'] = 'kubernetes.default.svc'
  await writeFile(kubeconfig, JSON.stringify(config))
  return {
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy()
      sockets.clear()
    },
    mend() {
      isCut = false
    },
  }
}
