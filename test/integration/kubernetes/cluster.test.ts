/**
 * The cluster of scripts/ci/kubernetes has the properties that the agent tests rely on; without them those tests would
 * prove nothing.
 */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import {
  addresses,
  apply,
  BUSYBOX,
  killPrograms,
  kubectl,
  makeNamespace,
  read,
  removeNamespace,
  whyNotKubernetes,
} from '../../support/kubernetes.ts'
import { until } from '../../support/processes.ts'

const DENY_ALL = 'walled'

describe('a test cluster', { skip: whyNotKubernetes }, () => {
  let namespace: string
  let machine: Server
  /** Addresses that an agent must not reach, as `host port`. */
  let forbidden: string[]

  const pod = (name: string, labels: object, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels },
    spec: { terminationGracePeriodSeconds: 0, automountServiceAccountToken: false, ...spec },
  })
  const shell = (name: string, script: string, more: object = {}) => ({
    name,
    image: BUSYBOX,
    command: ['sh', '-c', script],
    ...more,
  })
  const ready = (...names: string[]) =>
    kubectl(
      '--namespace',
      namespace,
      'wait',
      '--for=condition=Ready',
      '--timeout=50s',
      ...names.map((name) => `pod/${name}`),
    )
  const inside = (name: string, script: string) =>
    kubectl('--namespace', namespace, 'exec', name, '--', 'sh', '-c', script)
  /** The targets that accept a connection. */
  const reached = async (name: string, targets: string[]) => {
    const knocks = targets.map((target) => `(nc -w 2 ${target} </dev/null 2>/dev/null && echo ${target}) &`)
    return (await inside(name, `${knocks.join('\n')}\nwait`)).split('\n').filter(Boolean).sort()
  }

  before(async () => {
    namespace = await makeNamespace()
    machine = createServer((_, response) => response.end()).listen(0)
    await apply(
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'home', namespace },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
      pod(
        'page',
        { app: 'page' },
        {
          containers: [
            shell('page', 'echo kept >/home/index.html; exec httpd -f -p 8080 -h /home', {
              securityContext: { runAsUser: 1000, readOnlyRootFilesystem: true },
              volumeMounts: [{ name: 'home', mountPath: '/home' }],
            }),
          ],
          volumes: [{ name: 'home', persistentVolumeClaim: { claimName: 'home' } }],
        },
      ),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'page', namespace },
        spec: { type: 'NodePort', selector: { app: 'page' }, ports: [{ port: 80, targetPort: 8080 }] },
      },
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: { name: DENY_ALL, namespace },
        spec: { podSelector: { matchLabels: { app: DENY_ALL } }, policyTypes: ['Ingress', 'Egress'] },
      },
      pod('open', {}, { containers: [shell('open', 'exec httpd -f -p 8080 -h /tmp')] }),
      pod('walled', { app: DENY_ALL }, { containers: [shell('walled', 'exec httpd -f -p 8080 -h /tmp')] }),
    )
    await ready('page', 'open', 'walled')
    const of = await addresses()
    forbidden = [
      `${await read(namespace, 'pod/page', '.status.podIP')} 8080`,
      `${await read(namespace, 'service/page', '.spec.clusterIP')} 80`,
      `${of.node} ${await read(namespace, 'service/page', '.spec.ports[0].nodePort')}`,
      `${of.node} 6443`,
      `${of.node} 10250`,
      `${of.api} 443`,
      `${of.dns} 53`,
      `${of.machine} ${(machine.address() as AddressInfo).port}`,
    ].sort()
  })
  after(async () => {
    machine?.close()
    if (namespace) await removeNamespace(namespace)
  })

  it('a pod that no policy selects reaches pods, Services, names, the node and this machine', async () => {
    await until('all are reachable', async () => {
      assert.deepEqual(await reached('open', forbidden), forbidden)
      return true
    })
    assert.equal(await inside('open', `wget -q -O - http://page.${namespace}.svc.cluster.local/`), 'kept')
  })

  it('a pod isolated by a policy reaches nothing', async () => {
    await until('the policy is enforced', async () => (await reached('walled', forbidden)).length === 0)
  })

  it('a pod isolated by a policy cannot be reached by others', async () => {
    const walled = `${await read(namespace, 'pod/walled', '.status.podIP')} 8080`
    await until('the policy is enforced', async () => (await reached('open', [walled])).length === 0)
  })

  it('a pod that waits for its policy before it starts never gets out', async () => {
    const [page] = forbidden.filter((target) => target.endsWith(' 8080'))
    const knock = `nc -w 1 ${page} </dev/null 2>/dev/null`
    const names = ['one', 'two', 'three']
    const spec = {
      restartPolicy: 'Never',
      initContainers: [shell('guard', `while ${knock} || ${knock}; do usleep 100000; done`)],
      containers: [shell('agent', `for _ in 1 2 3 4 5; do ${knock} && echo out; done; true`)],
    }
    await apply(...names.map((name) => pod(name, { app: DENY_ALL }, spec)))
    for (const name of names) {
      await until(
        'it has ended',
        async () => (await read(namespace, `pod/${name}`, '.status.phase')) === 'Succeeded',
      )
      assert.equal(await kubectl('--namespace', namespace, 'logs', name, '--container', 'agent'), '')
    }
  })

  it('a cluster whose programs are killed recovers, and its pods keep running', async () => {
    for (const program of ['etcd', 'kube-apiserver', 'kubelet']) {
      await killPrograms(program)
      const restarts = await until('the API server answers', () =>
        read(namespace, 'pod/page', '.status.containerStatuses[0].restartCount').catch(() => false as const),
      )
      assert.equal(restarts, '0')
    }
    await apply(pod('later', {}, { containers: [shell('later', 'exec sleep 1000')] }))
    await until(
      'a new pod runs',
      async () => (await read(namespace, 'pod/later', '.status.phase')) === 'Running',
    )
  })
})
