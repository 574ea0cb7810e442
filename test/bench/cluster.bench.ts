/**
 * The time that Berth adds to agents in a cluster: to their start, one and twenty at once, held against `kubectl apply` of the same
 * image; to a console command, against `kubectl exec`; and what a pass over all sandboxes costs as they become more. The
 * cluster is that of scripts/ci/kubernetes.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { Cluster } from '../../src/sandboxes/kubernetes/cluster.ts'
import { ownedBy } from '../../src/sandboxes/kubernetes/objects.ts'
import { AGENT } from '../../src/sandboxes/kubernetes/pod-spec.ts'
import { KubernetesRuntime } from '../../src/sandboxes/kubernetes.ts'
import { AGENT_LABEL } from '../../src/sandboxes/names.ts'
import { type Ground, makeGround, newOptions } from '../integration/kubernetes/subject.ts'
import { newAgent, specOf } from '../integration/sandboxes/subject.ts'
import { ENGINE_IMAGE, startInCluster } from '../support/cluster-berth.ts'
import { ENGINE_VERSION } from '../support/engines.ts'
import { apply, KUBECONFIG, kubectl, makeNamespace, read, removeNamespace } from '../support/kubernetes.ts'
import { startModel } from '../support/model.ts'
import { until } from '../support/processes.ts'
import { type Agent, Api } from './support/agent-api.ts'
import { bareConfig, gatewayConfig, START_GATEWAY } from './support/bare-gateway.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { compare, ms, time } from './support/time.ts'

export const title = 'Agents in a cluster'

const STARTS = 3
const COMMANDS = 30
const AT_ONCE = 20
const START_MS = 900_000
const SANDBOXES = { few: 125, many: 500 }
const LISTS = 7
const GATEWAY_PORT = 18789
const KUBECTL_ENV = { ...process.env, KUBECONFIG }
const execute = promisify(execFile)

export async function bench(): Promise<Result[]> {
  return [...(await starts()), await lists()]
}

async function starts(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const model = await startModel()
  ending.defer(() => model.stop())
  const stack = await startInCluster({ ...model.env })
  ending.defer(() => stack.stop())
  const namespace = await makeNamespace()
  ending.defer(async () => void (await removeNamespace(namespace)))
  const api = new Api(stack, await stack.createKey())
  const image = ENGINE_IMAGE.replace('{version}', ENGINE_VERSION)
  const bare = (count: number) => startBare(namespace, image, bareConfig(model.url), count)

  // Each image is read for the first time once.
  await api.remove(await api.create())
  await bare(1)
  const rounds: { berth: number; bare: number }[] = []
  let agent: Agent | undefined
  for (let round = 0; round < STARTS; round++) {
    if (agent) await api.remove(agent)
    const began = performance.now()
    agent = await api.create()
    rounds.push({ berth: performance.now() - began, bare: await bare(1) })
  }
  if (!agent) throw new Error('nothing was started')
  const commands = await consoles(api, agent, stack.env.BERTH_KUBERNETES_NAMESPACE ?? '')
  await api.remove(agent)
  const together = await time(() => createMany(api, AT_ONCE))
  const { agents } = await api.call('GET', `/v0/agents?limit=${AT_ONCE}`)
  await Promise.all(agents.map((one: Agent) => api.remove(one)))
  return [
    compare('from the request to a running agent', rounds, { goal: { atMost: 1.2 } }),
    compare('a console command', commands, { goal: { atMost: 0.2 } }),
    compare(`${AT_ONCE} agents at once`, [{ berth: together, bare: await bare(AT_ONCE) }], {
      goal: { atMost: 1.2 },
    }),
  ]
}

/** Asks for all of them at once, and resolves when all run. */
async function createMany(api: Api, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => api.call('POST', '/v0/agents', { name: 'bench' })))
  const allRun = async () => {
    const { agents } = await api.call('GET', `/v0/agents?limit=${count}`)
    return agents.length === count && agents.every(({ status }: { status: string }) => status === 'running')
  }
  await until('all run', allRun, START_MS)
}

/** @returns what it takes from `kubectl apply` until all gateways are ready, in ms. The pods are gone afterwards. */
async function startBare(namespace: string, image: string, config: object, count: number): Promise<number> {
  const names = Array.from({ length: count }, () => `bare-${randomUUID().slice(0, 8)}`)
  const CONFIG = JSON.stringify({ ...config, gateway: gatewayConfig(GATEWAY_PORT, 'lan', randomUUID()) })
  const pods = names.map((name) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsUser: 1000, fsGroup: 1000 },
      containers: [
        {
          name: 'gateway',
          image,
          command: ['/usr/bin/tini', '--', 'sh', '-c', START_GATEWAY],
          env: [
            { name: 'HOME', value: '/home/node' },
            { name: 'CONFIG', value: CONFIG },
          ],
          resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '1', memory: '2Gi' } },
          volumeMounts: [{ name: 'home', mountPath: '/home/node' }],
        },
      ],
      volumes: [{ name: 'home', emptyDir: {} }],
    },
  }))
  const objects = names.map((name) => `pod/${name}`)
  const began = performance.now()
  await apply(...pods)
  // A single process watches all pods: a process for each look at each pod would distort the measurement.
  const inNamespace = ['--namespace', namespace, 'wait', `--timeout=${START_MS / 1000}s`]
  await execute('kubectl', [...inNamespace, '--for=jsonpath={.status.podIP}', ...objects], {
    env: KUBECTL_ENV,
  })
  const addresses = (await read(namespace, 'pods', '.items[*].status.podIP')).split(' ')
  const isReady = async (address: string) => (await fetch(`http://${address}:${GATEWAY_PORT}/readyz`)).ok
  await Promise.all(
    addresses.map((address) => until(`${address} is ready`, () => isReady(address), START_MS)),
  )
  const took = performance.now() - began
  await kubectl('--namespace', namespace, 'delete', '--grace-period=1', ...objects)
  return took
}

async function consoles(api: Api, { agentId }: Agent, namespace: string) {
  const inPod = ['--namespace', namespace, 'exec', `berth-${agentId}`, '--', 'sh', '-c', 'true']
  const rounds: { berth: number; bare: number }[] = []
  for (let i = -2; i < COMMANDS; i++) {
    const berth = await time(() =>
      api.call('POST', `/v0/agents/${agentId}/console/exec`, { command: 'true' }),
    )
    const bare = await time(() => execute('kubectl', inPod, { env: KUBECTL_ENV }))
    if (i >= 0) rounds.push({ berth, bare }) // the first are the warm-up
  }
  return rounds
}

/** The list that each pass of the reconciler begins with, as sandboxes become four times as many. */
async function lists(): Promise<Result> {
  await using ending = new AsyncDisposableStack()
  const ground = await makeGround()
  ending.defer(() => ground.remove())
  const options = await newOptions(ground, { cluster: new Cluster(KUBECONFIG, ground.namespace) })
  const runtime = new KubernetesRuntime(options)
  ending.defer(() => runtime.close())
  const measure = async (count: number) => {
    await fill(runtime, ground, count)
    const times: number[] = []
    for (let i = 0; i < LISTS; i++)
      times.push(
        await time(async () => {
          const { sandboxes } = await runtime.list()
          if (sandboxes.filter(({ state }) => state === 'running').length !== count)
            throw new Error(`not ${count} sandboxes run`)
        }),
      )
    return median(times)
  }
  const few = await measure(SANDBOXES.few)
  const many = await measure(SANDBOXES.many)
  return {
    what: `a list of ${SANDBOXES.many} sandboxes, against one of ${SANDBOXES.few}`,
    berth: ms(many),
    bare: ms(few),
    ratio: many / few,
    goal: { atMost: (1.25 * SANDBOXES.many) / SANDBOXES.few },
  }
}

/** Makes sandboxes until there are so many, each with a pod that only waits. */
async function fill(runtime: KubernetesRuntime, { namespace }: Ground, count: number): Promise<void> {
  const { sandboxes } = await runtime.list()
  const missing = Array.from({ length: count - sandboxes.length }, newAgent)
  const waiting = [...missing]
  const makers = Array.from({ length: 8 }, async () => {
    for (let agentId = waiting.pop(); agentId; agentId = waiting.pop()) await runtime.create(specOf(agentId))
  })
  await Promise.all(makers)
  const records = JSON.parse(
    await kubectl('--namespace', namespace, 'get', 'configmap', `--selector=${AGENT_LABEL}`, '--output=json'),
  )
  const pods = records.items
    .filter(({ metadata }: any) => missing.includes(metadata.labels[AGENT_LABEL]))
    .map(({ metadata }: any) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: metadata.name,
        namespace,
        labels: metadata.labels,
        ownerReferences: ownedBy({ metadata }),
      },
      spec: {
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 65535, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: AGENT,
            image: 'berth.test/pause:1',
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          },
        ],
      },
    }))
  for (let from = 0; from < pods.length; from += 25) await apply(...pods.slice(from, from + 25))
  const allRun = async () => {
    const found = await runtime.list()
    return found.sandboxes.filter(({ state }) => state === 'running').length === count
  }
  await until(`${count} pods run`, allRun, START_MS)
}

if (import.meta.main) print(title, await bench())
