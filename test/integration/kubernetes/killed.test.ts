/** A worker is killed during each of its calls, and the next worker repairs what it left. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { KubernetesRuntime } from '../../../src/sandboxes/kubernetes.ts'
import { nameOf } from '../../../src/sandboxes/names.ts'
import { killPrograms, kubectl, whyNotKubernetes } from '../../support/kubernetes.ts'
import { until } from '../../support/processes.ts'
import { newAgent, outputIn, runIn, specOf, VERSIONS } from '../sandboxes/subject.ts'
import { type Ground, makeGround, newOptions } from './subject.ts'

const PROGRAM = join(import.meta.dirname, 'worker.program.ts')
/** A run kills at every fourth call, with a different offset in each run. */
const STEP = 4
const AT_ONCE = 4
const STEP_MS = 180_000
const KINDS = 'pod,configmap,networkpolicy,persistentvolumeclaim'

/** The objects of an agent in the cluster, one per line. */
const leftOf = ({ namespace }: Ground, agentId: string) =>
  kubectl('--namespace', namespace, 'get', KINDS, `--selector=berth.agent=${agentId}`, '--output=name')

describe('a killed worker of agents in a cluster', { skip: whyNotKubernetes }, () => {
  let ground: Ground
  let runtime: KubernetesRuntime
  let instance: string
  let options: object
  before(async () => {
    ground = await makeGround()
    const { cluster: _, owner, ...rest } = await newOptions(ground)
    options = rest
    instance = owner.instance
    runtime = new KubernetesRuntime({ ...rest, owner, cluster: (await newOptions(ground)).cluster })
  })
  after(async () => {
    await runtime?.close()
    await ground?.remove()
  })

  /** Runs a life that is killed at a call; resolves to its number of calls if it ended before that. */
  const live = async (agentId: string, dieAt?: number): Promise<number | undefined> => {
    const { kubeconfig, namespace } = ground
    const input = { options, kubeconfig, namespace, instance, agentId, dieAt }
    const program = promisify(execFile)(process.execPath, [PROGRAM, JSON.stringify(input)])
    return program.then(
      ({ stdout }) => Number(stdout),
      (error) => void assert.equal(error.signal, 'SIGKILL', error.stderr),
    )
  }
  const left = (agentId: string) => leftOf(ground, agentId)

  it('an agent has one sandbox after its worker’s next attempt, and none after its removal', async () => {
    const calls = (await live(newAgent())) ?? 0
    let next = 1 + Math.floor(Math.random() * STEP)
    const place = () => {
      next += STEP
      return next - STEP
    }
    const tries = Array.from({ length: AT_ONCE }, async () => {
      for (let dieAt = place(); dieAt <= calls; dieAt = place()) {
        const agentId = newAgent()
        const ended = await live(agentId, dieAt)
        // An object that exists at the first check needs no watch, so a life may have a few calls fewer than the first
        // one.
        if (ended) assert(ended > calls - STEP, `it has ${ended} calls and not ${calls}`)
        await runtime.create(specOf(agentId))
        const { address, state } = await runtime.start(agentId)
        assert.equal(state, 'running', `killed at call ${dieAt}`)
        await until('agentd answers', async () => (await runIn(address, 'true')).code === 0)
        await outputIn(address, 'touch ~/mine')
        assert.equal((await left(agentId)).split('\n').length, 4)
        await runtime.remove(agentId, { volume: true })
        // The cluster itself collects the policies.
        await until(`nothing is left, killed at call ${dieAt}`, async () => (await left(agentId)) === '')
      }
    })
    await Promise.all(tries)
    assert(calls > 20, `a life has ${calls} calls`)
  })

  it('a half-removed sandbox is found by its claim and removed with it', async () => {
    const agentId = newAgent()
    await runtime.create(specOf(agentId))
    await runtime.start(agentId)
    await kubectl('--namespace', ground.namespace, 'delete', 'configmap', nameOf(agentId))
    // The pod is deleted with its record, the claim is not.
    await until('it is listed', async () => (await runtime.list()).volumes.includes(agentId))
    await until('its pod is collected', async () => !(await left(agentId)).includes('pod/'))
    assert.match(await left(agentId), /persistentvolumeclaim/)
    await runtime.remove(agentId, { volume: true })
    assert.equal(await runtime.inspect(agentId), undefined)
    await until('nothing is left', async () => (await left(agentId)) === '')
  })
})

describe('killed programs of a cluster', { skip: whyNotKubernetes }, () => {
  let ground: Ground
  let runtime: KubernetesRuntime
  before(async () => {
    ground = await makeGround()
    runtime = new KubernetesRuntime(await newOptions(ground))
  })
  after(async () => {
    await runtime?.close()
    await ground?.remove()
  })

  for (const program of ['kubelet', 'containerd', 'kube-apiserver', 'etcd'])
    it(`an agent keeps one sandbox and one home while ${program} is killed at each step of its life`, async () => {
      const agentId = newAgent()
      const spec = specOf(agentId)
      const newer = specOf(agentId, { engineVersion: VERSIONS[1] })
      /** Kills while the step runs, and then repeats the step until it succeeds, as a worker does. */
      const underFire = async (what: string, step: () => Promise<unknown>) => {
        const first = step().catch(() => {})
        await sleep(Math.random() * 1500)
        await killPrograms(program)
        await first
        await until(`${what} is done`, () => step().then(() => true), STEP_MS)
      }
      const objects = async () => (await leftOf(ground, agentId)).split('\n').filter(Boolean).length

      await underFire('a start', async () => {
        await runtime.create(spec)
        await runtime.start(agentId)
      })
      const sandbox = await runtime.inspect(agentId)
      await until(
        'agentd answers',
        async () => (await runIn(sandbox?.address ?? null, 'touch ~/mine')).code === 0,
      )
      await underFire('an update', async () => {
        await runtime.create(newer)
        await runtime.start(agentId)
      })
      const updated = await runtime.inspect(agentId)
      assert.equal(updated?.engineVersion, VERSIONS[1])
      await until(
        'agentd answers',
        async () => (await runIn(updated?.address ?? null, 'ls ~/mine')).code === 0,
      )
      assert.equal(await objects(), 4)
      await underFire('a stop', () => runtime.stop(agentId))
      assert.equal((await runtime.inspect(agentId))?.state, 'exited')
      await underFire('a removal', () => runtime.remove(agentId, { volume: true }))
      await until('nothing is left', async () => (await objects()) === 0, STEP_MS)
    })
})
