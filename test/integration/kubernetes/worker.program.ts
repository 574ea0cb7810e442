/** A worker that takes an agent through its life in a cluster, and kills itself during the nth call. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster } from '../../../src/sandboxes/kubernetes/cluster.ts'
import { KubernetesRuntime } from '../../../src/sandboxes/kubernetes.ts'
import { specOf, VERSIONS } from '../sandboxes/subject.ts'

const { options, kubeconfig, namespace, instance, agentId, dieAt } = JSON.parse(process.argv[2] ?? '{}')

let calls = 0
class MortalCluster extends Cluster {
  override async call(...[what, bounds, work]: Parameters<Cluster['call']>): Promise<never> {
    return (await super.call(what, bounds, async (...parts) => {
      const answer = work(...parts)
      if (++calls === dieAt) {
        // The call may or may not have arrived by then.
        await sleep(Math.random() * 10)
        process.kill(process.pid, 'SIGKILL')
      }
      return answer
    })) as never
  }
}

const owner = { instance, former: [], knows: async () => new Set<string>() }
const cluster = new MortalCluster(kubeconfig, namespace)
const runtime = new KubernetesRuntime({ ...options, cluster, owner })
await runtime.create(specOf(agentId))
await runtime.start(agentId)
await runtime.create(specOf(agentId, { engineVersion: VERSIONS[1] }))
await runtime.start(agentId)
await runtime.stop(agentId)
await runtime.remove(agentId, { volume: true })
console.log(calls)
process.exit()
