/**
 * The list at the beginning of each reconciler pass, with few sandboxes in a cluster and with many, in turns. Their
 * pods only wait. The cluster is the one of scripts/ci/kubernetes.
 */
import { Cluster } from '../../src/sandboxes/kubernetes/cluster.ts'
import { ownedBy } from '../../src/sandboxes/kubernetes/objects.ts'
import { AGENT } from '../../src/sandboxes/kubernetes/pod-spec.ts'
import { KubernetesRuntime } from '../../src/sandboxes/kubernetes.ts'
import { AGENT_LABEL } from '../../src/sandboxes/names.ts'
import { type Ground, makeGround, newOptions } from '../integration/kubernetes/subject.ts'
import { newAgent, specOf } from '../integration/sandboxes/subject.ts'
import { apply, KUBECONFIG, kubectl } from '../support/kubernetes.ts'
import { until } from '../support/processes.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { ms, time } from './support/time.ts'

export const title = 'Many sandboxes in a cluster'

/** Together they fit on the node of scripts/ci/kubernetes. */
const SANDBOXES = { few: 80, many: 500 }
const LISTS = 7
const START_MS = 900_000

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const open = async (count: number) => {
    const ground = await makeGround()
    ending.defer(() => ground.remove())
    const options = await newOptions(ground, { cluster: new Cluster(KUBECONFIG, ground.namespace) })
    const runtime = new KubernetesRuntime(options)
    ending.defer(() => runtime.close())
    await fill(runtime, ground, count)
    return () =>
      time(async () => {
        const { sandboxes } = await runtime.list()
        if (sandboxes.filter(({ state }) => state === 'running').length !== count)
          throw new Error(`not ${count} sandboxes run`)
      })
  }
  const [listFew, listMany] = [await open(SANDBOXES.few), await open(SANDBOXES.many)]
  const [few, many]: [number[], number[]] = [[], []]
  for (let i = 0; i < LISTS; i++) {
    few.push(await listFew())
    many.push(await listMany())
  }
  return [
    {
      what: `a list of ${SANDBOXES.many} sandboxes, against one of ${SANDBOXES.few}`,
      berth: ms(median(many)),
      bare: ms(median(few)),
      ratio: median(many) / median(few),
      goal: { atMost: (1.25 * SANDBOXES.many) / SANDBOXES.few },
    },
  ]
}

/** Creates sandboxes up to this number, each with a pod that only waits. */
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
