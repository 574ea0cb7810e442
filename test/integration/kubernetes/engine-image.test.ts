/** An engine image that was built without Docker, pulled and run as a pod of a cluster. */
import assert from 'node:assert/strict'
import { createWriteStream } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { AGENTD_PORT, type AgentdConfig, GATEWAY_PORT } from '../../../agentd/protocol.ts'
import { buildClusterImage } from '../../../src/openclaw/cluster-image.ts'
import { BASE_IMAGE, docker, dockerAnswers } from '../../support/docker.ts'
import { listen } from '../../support/egress.ts'
import { ENGINE_VERSION, ensureEngines } from '../../support/engines.ts'
import { useFolder } from '../../support/folder.ts'
import {
  addresses,
  apply,
  kubectl,
  makeNamespace,
  read,
  removeNamespace,
  whyNotKubernetes,
} from '../../support/kubernetes.ts'
import { until } from '../../support/processes.ts'
import { startRegistry, withoutRegistry } from '../../support/registry.ts'

const skip =
  whyNotKubernetes ||
  withoutRegistry ||
  ((await dockerAnswers()) ? false : 'no Docker with a base image: scripts/ci/{docker,base-image}.sh')

test('a pod runs the engine and agentd of an image that was pushed without Docker', { skip }, async (t) => {
  const dir = await useFolder('berth-engine-image-', t)
  const base = join(dir, 'base.tar')
  await pipeline(await docker.getImage(BASE_IMAGE).get(), createWriteStream(base))

  // The registry that the node pulls from. Plain HTTP pushes are possible only to this machine.
  const { machine } = await addresses()
  await startRegistry(t, 'none', `${machine}:5000`)
  const port = await listen(
    t,
    createServer((client) => {
      const registry = connect({ host: machine, port: 5000 })
      client.on('error', () => registry.destroy()).pipe(registry)
      registry.on('error', () => client.destroy()).pipe(client)
    }),
  )
  const repository = 'berth/openclaw'
  const digest = await buildClusterImage({
    version: ENGINE_VERSION,
    baseImage: base,
    enginesDir: await ensureEngines(),
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    name: `127.0.0.1:${port}/${repository}:${ENGINE_VERSION}`,
    to: 'registry',
  })

  const namespace = await makeNamespace()
  t.after(() => removeNamespace(namespace))
  const agentd: AgentdConfig = {
    agentId: 'x0000001',
    host: '0.0.0.0',
    port: AGENTD_PORT,
    tokenHash: '0'.repeat(64),
    home: '/home/node',
    engineDir: '/opt/openclaw',
    gatewayPort: GATEWAY_PORT,
    diskBytes: 1e9,
  }
  const volumes = ['/home/node', '/tmp'].map((mountPath, i) => ({ name: `v${i}`, mountPath }))
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'agent', namespace },
    spec: {
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 },
      volumes: volumes.map(({ name }) => ({ name, emptyDir: {} })),
      containers: [
        {
          name: 'agent',
          image: `registry.test/${repository}:${ENGINE_VERSION}`,
          env: [{ name: 'AGENTD_CONFIG', value: JSON.stringify(agentd) }],
          volumeMounts: volumes,
          securityContext: {
            readOnlyRootFilesystem: true,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  })
  const address = await until('the pod has an address', async () => {
    const found = await read(namespace, 'pod/agent', '.status.podIP')
    return found !== '' && found
  })
  // Its image is pulled first.
  const ask = () => fetch(`http://${address}:${AGENTD_PORT}/v1/status`)
  const answer = await until('agentd answers', ask, 180_000)
  assert.equal(answer.status, 401)
  const image = await read(namespace, 'pod/agent', '.status.containerStatuses[0].imageID')
  assert.ok(image.endsWith(`@${digest}`), image)
  const inside = (...command: string[]) =>
    kubectl('--namespace', namespace, 'exec', 'agent', '--', ...command)
  assert.match(await inside('openclaw', '--version'), new RegExp(ENGINE_VERSION))
  const memory = /VmRSS:\s+(\d+) kB/.exec(
    await inside('sh', '-c', 'cat /proc/$(pidof node | tr " " "\\n" | tail -n 1)/status'),
  )
  t.diagnostic(`agentd takes ${Math.round(Number(memory?.[1]) / 1024)} MiB`)
})
