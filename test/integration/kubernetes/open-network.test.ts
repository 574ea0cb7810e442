/** Pods whose network is open, or becomes open: they run no instruction of an agent. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type KubernetesOptions, KubernetesRuntime } from '../../../src/sandboxes/kubernetes.ts'
import { nameOf } from '../../../src/sandboxes/names.ts'
import { apply, killPrograms, kubectl, read, whyNotKubernetes } from '../../support/kubernetes.ts'
import { until } from '../../support/processes.ts'
import { newAgent, runIn, specOf } from '../sandboxes/subject.ts'
import { BACK_MS, type Ground, makeGround, newOptions } from './subject.ts'

const REFUSAL = /the network of the cluster does not enforce its NetworkPolicy/

describe('an agent on an open network', { skip: whyNotKubernetes }, () => {
  it('a namespace that another policy opens starts no agent and no worker', async () => {
    const ground = await makeGround()
    try {
      await openUp(ground)
      const given = await newOptions(ground)
      const runtime = new KubernetesRuntime({ ...given, pods: { ...given.pods, guardSeconds: 3 } })
      assert.match((await runtime.findObstacle()) ?? '', /does not enforce NetworkPolicy/)
      const agentId = newAgent()
      await runtime.create(specOf(agentId))
      await assert.rejects(runtime.start(agentId), REFUSAL)
      await runtime.close()
    } finally {
      await ground.remove()
    }
  })

  it('an agent whose guard missed an open network is stopped until the network is closed', async () => {
    const ground = await makeGround()
    try {
      await openUp(ground)
      const given = await newOptions(ground)
      const driver = (pods: Partial<KubernetesOptions['pods']>) =>
        new KubernetesRuntime({ ...given, pods: { ...given.pods, ...pods } })
      const agentId = newAgent()
      await driver({ openNetwork: true }).create(specOf(agentId))
      const hasty = driver({ guardSeconds: 3 })
      await assert.rejects(hasty.start(agentId), REFUSAL)
      assert.equal((await hasty.inspect(agentId))?.state, 'exited')

      await kubectl('--namespace', ground.namespace, 'delete', 'networkpolicy', 'open')
      const { address } = await driver({}).start(agentId)
      await until('agentd answers', async () => (await runIn(address, 'true')).code === 0)
      // The network is checked once per pod: a start of a running pod must not need a command in it.
      await openUp(ground)
      assert.equal((await hasty.start(agentId)).address, address)
    } finally {
      await ground.remove()
    }
  })

  it('an agent whose guard mistook a dead API server for a closed network is stopped', async () => {
    const ground = await makeGround()
    const given = await newOptions(ground)
    const driver = (guardSeconds: number) =>
      new KubernetesRuntime({ ...given, pods: { ...given.pods, guardSeconds } })
    // The guard uses the timeout of the driver that created the agent, so it is still probing when the API server is
    // killed.
    const maker = driver(120)
    const runtime = driver(20)
    const agentId = newAgent()
    const guard = async (path: string) =>
      (await read(
        ground.namespace,
        `pod/${nameOf(agentId)}`,
        `.status.initContainerStatuses[0].state.${path}`,
      )) || undefined
    try {
      await openUp(ground)
      await maker.create(specOf(agentId))
      const isOpen = ({ message }: Error) => REFUSAL.test(message) && 'refused'
      const start = () => runtime.start(agentId).then(() => 'runs', isOpen)
      const outcome = until('its start ends', start, BACK_MS)
      await until('its guard probes', () => guard('running'))
      await killPrograms('kube-apiserver')
      assert.equal(await until('its guard has ended', () => guard('terminated.exitCode'), BACK_MS), '0')
      assert.equal(await outcome, 'refused')
    } finally {
      await Promise.all([maker.close(), runtime.close()])
      await ground.remove()
    }
  })
})

/** Opens the network of all pods of a namespace, whatever other policies say. */
const openUp = ({ namespace }: Ground) =>
  apply({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'open', namespace },
    spec: { podSelector: {}, policyTypes: ['Egress'], egress: [{}] },
  })
