/**
 * The time that Berth adds to agents in a cluster: to their start, one and twenty at once, compared with `kubectl
 * apply` of the same image; and to a console command, compared with `kubectl exec`. The cluster is the one of
 * scripts/ci/kubernetes.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { ENGINE_IMAGE, startInCluster } from '../support/cluster-berth.ts'
import { ENGINE_VERSION } from '../support/engines.ts'
import { apply, KUBECONFIG, kubectl, makeNamespace, read, removeNamespace } from '../support/kubernetes.ts'
import { startModel } from '../support/model.ts'
import { until } from '../support/processes.ts'
import { type Agent, Api } from './support/agent-api.ts'
import { bareConfig, gatewayConfig, START_GATEWAY } from './support/bare-gateway.ts'
import { print, type Result } from './support/report.ts'
import { compare, time } from './support/time.ts'

export const title = 'Agents in a cluster'

const STARTS = 3
const COMMANDS = 30
const AT_ONCE = 20
const START_MS = 900_000
const GATEWAY_PORT = 18789
const KUBECTL_ENV = { ...process.env, KUBECONFIG }
const execute = promisify(execFile)

export async function bench(): Promise<Result[]> {
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

  // Each image is read once for the first time.
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

/** Requests all of them at once, and resolves when all run. */
async function createMany(api: Api, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => api.call('POST', '/v0/agents', { name: 'bench' })))
  const allRun = async () => {
    const { agents } = await api.call('GET', `/v0/agents?limit=${count}`)
    return agents.length === count && agents.every(({ status }: { status: string }) => status === 'running')
  }
  await until('all run', allRun, START_MS)
}

/** @returns the time from `kubectl apply` until all gateways are ready, in ms. The pods are gone afterwards. */
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
  // A single process watches all pods, because a process for each check of each pod would distort the measurement.
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

if (import.meta.main) print(title, await bench())
