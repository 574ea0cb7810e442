/** The objects that the chart renders from its values. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import packageJson from '../../../package.json' with { type: 'json' }
import { loadConfig } from '../../../src/config.ts'
import { SECRETS, settings } from '../../../src/settings.ts'
import {
  containerOf,
  environmentOf,
  find,
  made,
  NEEDED,
  namesOf,
  podOf,
  policyOf,
  ROLES,
  refused,
  withNeeded,
} from '../../support/chart.ts'
import { useFolder } from '../../support/folder.ts'
import { CHART, helm, lint, type Made, render, type Values, withoutHelm } from '../../support/helm.ts'

const ROOT = new URL('../../../', import.meta.url)

describe('the chart', { skip: withoutHelm }, () => {
  it('the chart passes helm lint', async () => {
    assert.match(await lint(NEEDED), /1 chart\(s\) linted, 0 chart\(s\) failed/)
  })

  it('the chart has Berth’s version', async () => {
    const chart = parse(await readFile(`${CHART}/Chart.yaml`, 'utf8'))
    assert.deepEqual([chart.version, chart.appVersion], [packageJson.version, packageJson.version])
    assert.equal(containerOf(await made(), 'web').image, `registry.example.org/berth:${packageJson.version}`)
  })

  it('unknown and invalid values are rejected by name', async () => {
    await refused({}, /image[./]repository|publicUrl/)
    await refused({ ...NEEDED, agents: {} }, /agents\.engineImage/)
    await refused(withNeeded({ publicUrl: 'berth.example.org' }), /publicUrl/)
    await refused(withNeeded({ wbe: {} }), /wbe/)
    await refused(withNeeded({ web: { replica: 2 } }), /replica/)
    await refused(withNeeded({ settings: { BERTH_AGENT_LIMITS: 5 } }), /BERTH_AGENT_LIMITS/)
    await refused(withNeeded({ web: { replicas: 2 } }), /web\.uploads: bucket or existingClaim/)
    const both = { bucket: 's3://uploads', existingClaim: 'uploads' }
    await refused(withNeeded({ web: { uploads: both } }), /web\.uploads: either/)
    await refused(withNeeded({ web: { uploads: { bucket: 'uploads' } } }), /uploads[./]bucket/)
    await refused(withNeeded({ ingress: { tls: { issuer: 'a', clusterIssuer: 'b' } } }), /ingress\.tls/)
  })

  it('values cannot set secrets or settings that the chart sets itself', async () => {
    const all = await made()
    const own = new Set(ROLES.flatMap((role) => containerOf(all, role).env.map((one: any) => one.name)))
    const secrets = [...SECRETS, ...own].filter((name) => name in settings.shape)
    const values = withNeeded({ settings: Object.fromEntries(secrets.map((name) => [name, 'x'])) })
    const words = await render(values).then(() => '', String)
    assert.deepEqual(
      secrets.filter((name) => !words.includes(`propertyName '${name}'`)),
      [],
    )
  })

  it('each role starts with valid settings and only the secrets that it needs', async () => {
    const all = await made({ settings: { BERTH_GATEWAY_DOMAIN: 'gateway.example.org' } })
    const secretsOf = (role: string) =>
      containerOf(all, role)
        .env.filter((one: any) => one.valueFrom)
        .map((one: any) => one.name)
    const both = ['DATABASE_URL', 'REDIS_URL', 'IPFS_API_URL', 'IPFS_PRIVATE_API_URL']
    const others = [
      'DATABASE_DIRECT_URL',
      'IPFS_API_URL_PREVIOUS',
      'IPFS_PRIVATE_API_URL_PREVIOUS',
      'IPFS_CLUSTER_API_URL',
      'IPFS_PRIVATE_CLUSTER_API_URL',
    ]
    assert.deepEqual(secretsOf('agent-proxy'), ['AGENT_PROXY_KEY'])
    assert.deepEqual(secretsOf('web'), [
      ...[...both, 'JWT_KEY', 'SECRETS_KEY', 'AGENT_PROXY_KEY'],
      ...[...others, 'BERTH_MODEL_KEY', 'BERTH_MODEL_FALLBACK_KEY', 'BERTH_OIDC_CLIENT_SECRET'],
      ...['JWT_KEY_PREVIOUS', 'SECRETS_KEY_PREVIOUS'],
    ])
    const ofWorker = [...both, 'SECRETS_KEY', 'AGENT_PROXY_KEY', ...others, 'SECRETS_KEY_PREVIOUS']
    assert.deepEqual(secretsOf('worker'), ofWorker)
    for (const role of ROLES) {
      const env = environmentOf(all, role)
      // Optional secrets have no value in this environment.
      const config = loadConfig(JSON.parse(JSON.stringify(env)))
      assert.equal(config.BERTH_EGRESS_URL, 'http://berth-agent-proxy:3128')
      assert.equal(config.BERTH_GATEWAY_DOMAIN, 'gateway.example.org')
      assert.equal(config.BERTH_RUNTIME, 'kubernetes')
      assert.equal(podOf(all, role).enableServiceLinks, false, 'they would be unknown settings')
    }
    const image = containerOf(all, 'web').env.find((one: any) => one.name === 'JWT_KEY')
    assert.deepEqual(image.valueFrom, { secretKeyRef: { name: 'berth', key: 'JWT_KEY' } })
  })

  it('pods run as nobody on a read-only root, and only the worker has a token', async () => {
    const all = await made()
    const pods = [
      ...ROLES.map((role) => podOf(all, role)),
      find(all, 'Job', 'berth-migrate').spec.template.spec,
    ]
    for (const pod of pods) {
      assert.equal(pod.securityContext.runAsNonRoot, true)
      assert.equal(pod.securityContext.seccompProfile.type, 'RuntimeDefault')
      for (const { securityContext, resources } of pod.containers) {
        assert.deepEqual(securityContext, {
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        })
        assert.ok(resources.limits.memory && resources.requests.cpu)
      }
    }
    assert.deepEqual(
      pods.map((pod) => pod.automountServiceAccountToken),
      [false, true, false, false],
    )
    assert.equal(podOf(all, 'worker').serviceAccountName, 'berth-worker')
  })

  it('each role has probes for /healthz and /readyz', async () => {
    const all = await made()
    for (const role of ROLES) {
      const { livenessProbe, readinessProbe, startupProbe, ports } = containerOf(all, role)
      assert.deepEqual(
        [livenessProbe, readinessProbe, startupProbe].map(({ httpGet }) => httpGet),
        ['/healthz', '/readyz', '/healthz'].map((path) => ({ path, port: 'health' })),
      )
      // By then the other pods’ network policies let it in.
      assert.equal(readinessProbe.initialDelaySeconds, 5)
      assert.ok(ports.some((one: any) => one.name === 'health' && one.containerPort === 3000))
    }
  })

  it('pods that stop have time to finish their work', async () => {
    const all = await made({ web: { stopSeconds: 7 }, agentProxy: { stopSeconds: 3, drainSeconds: 4 } })
    assert.deepEqual(containerOf(all, 'web').lifecycle.preStop.exec.command, ['sleep', '7'])
    assert.equal(podOf(all, 'web').terminationGracePeriodSeconds, 67)
    assert.equal(podOf(all, 'agent-proxy').terminationGracePeriodSeconds, 17)
    assert.equal(environmentOf(all, 'agent-proxy').BERTH_AGENT_PROXY_STOP, 'acceptSeconds=3,drainSeconds=4')
  })

  it('the schema is migrated before anything else', async () => {
    const { metadata, spec } = find(await made(), 'Job', 'berth-migrate')
    assert.equal(metadata.annotations?.['helm.sh/hook'], 'pre-install,pre-upgrade')
    assert.deepEqual(spec.template.spec.containers[0].command, ['node', 'bin/berth.mjs', 'migrate'])
  })

  it('the agents’ namespace and the worker’s rights match deploy/kubernetes/agents.yaml', async () => {
    const text = await readFile(new URL('deploy/kubernetes/agents.yaml', ROOT), 'utf8')
    const objects = parseAllDocuments(text).map((document) => document.toJS() as Made)
    const all = await made({ agents: { ...NEEDED.agents, namespace: 'others' } })
    for (const { kind, metadata, ...rest } of objects) {
      const own = all.find(
        (one) => one.kind === kind && one.metadata.name === metadata.name.replace('berth-agents', 'others'),
      )
      assert.ok(own, kind)
      const bound = JSON.stringify(rest).replaceAll('"namespace":"berth"', '"namespace":"berth-system"')
      const { kind: _, metadata: found, ...of } = own
      assert.deepEqual(of, JSON.parse(bound))
      assert.equal(found.namespace, metadata.namespace && 'others')
      const isKept = found.annotations?.['helm.sh/resource-policy'] === 'keep'
      assert.equal(isKept, !['Role', 'RoleBinding'].includes(kind), `${kind} stays, with the homes of agents`)
    }
    const known = await made({ agents: { ...NEEDED.agents, createNamespace: false } })
    assert.deepEqual(namesOf(known, 'Namespace'), [])
    assert.deepEqual(namesOf(known, 'Role'), ['berth-worker'])
  })

  it('another release has different names and separate rights', async () => {
    const all = await render(NEEDED, { release: 'second-one', namespace: 'second' })
    for (const { kind, metadata } of all.filter(({ kind }) => kind !== 'Namespace'))
      if (!['berth-agent', 'berth-nothing'].includes(metadata.name))
        assert.match(metadata.name, /^second-one/, kind)
    const { subjects, roleRef } = find(all, 'RoleBinding', 'second-one-worker')
    assert.deepEqual(subjects, [{ kind: 'ServiceAccount', name: 'second-one-worker', namespace: 'second' }])
    assert.equal(roleRef.name, 'second-one-worker')
    const env = find(all, 'Deployment', 'second-one-worker').spec.template.spec.containers[0].env
    assert.ok(env.some((one: any) => one.value === 'http://second-one-agent-proxy:3128'))
  })

  it('a chart without agents has no agent proxy and no rights', async () => {
    const all = await made({ agents: { enabled: false, engineImage: '' } })
    for (const kind of ['Namespace', 'Role', 'RoleBinding']) assert.deepEqual(namesOf(all, kind), [])
    assert.deepEqual(namesOf(all, 'Deployment').sort(), ['berth-web', 'berth-worker'])
    assert.equal(environmentOf(all, 'worker').BERTH_QUEUES, 'pins,repairs,storage,webhooks')
    assert.equal(podOf(all, 'worker').automountServiceAccountToken, false)
  })

  it('a role may lose one pod at a time', async () => {
    const all = await made()
    for (const role of ROLES) {
      const { spec } = find(all, 'PodDisruptionBudget', `berth-${role}`)
      assert.equal(spec.maxUnavailable, 1)
      const { labels } = find(all, 'Deployment', `berth-${role}`).spec.template.metadata
      for (const [name, value] of Object.entries(spec.selector.matchLabels)) assert.equal(labels[name], value)
    }
  })

  it('web scales by CPU or requests, and workers by queue age, if enabled', async () => {
    assert.deepEqual(namesOf(await made(), 'HorizontalPodAutoscaler'), [])
    const uploads = { existingClaim: 'uploads' }
    const all = await made({
      web: { uploads, autoscaling: { enabled: true, maxReplicas: 7 } },
      worker: { autoscaling: { enabled: true, oldestSeconds: 30, matchLabels: { queue: 'pins' } } },
    })
    const web = find(all, 'HorizontalPodAutoscaler', 'berth-web').spec
    assert.deepEqual([web.minReplicas, web.maxReplicas], [2, 7])
    assert.deepEqual(web.metrics[0].resource, {
      name: 'cpu',
      target: { type: 'Utilization', averageUtilization: 70 },
    })
    assert.equal(find(all, 'Deployment', 'berth-web').spec.replicas, undefined)
    const worker = find(all, 'HorizontalPodAutoscaler', 'berth-worker').spec
    assert.deepEqual(worker.metrics[0].external, {
      metric: { name: 'berth_operation_oldest_seconds', selector: { matchLabels: { queue: 'pins' } } },
      target: { type: 'Value', value: '30' },
    })
    const byRequests = await made({ web: { uploads, autoscaling: { enabled: true, requestsPerSecond: 50 } } })
    assert.deepEqual(find(byRequests, 'HorizontalPodAutoscaler', 'berth-web').spec.metrics[0].pods, {
      metric: { name: 'berth_http_requests_per_second' },
      target: { type: 'AverageValue', averageValue: '50' },
    })
  })

  it('all web processes share the upload volume', async () => {
    const volume = async (values: Values) =>
      podOf(await made(values), 'web').volumes.find((one: any) => one.name === 'uploads')
    assert.deepEqual((await volume({})).emptyDir, {})
    const shared = { web: { replicas: 3, uploads: { existingClaim: 'uploads' } } }
    assert.deepEqual((await volume(shared)).persistentVolumeClaim, { claimName: 'uploads' })
    assert.equal(find(await made(shared), 'Deployment', 'berth-web').spec.replicas, 3)
  })

  it('web processes with their uploads in a bucket need no volume that they share', async () => {
    const s3 = { environmentSecret: 'bucket' }
    const BERTH_BLOCKS_S3_URL = 's3://blocks/berth'
    for (const [values, place] of [
      [{ s3, web: { replicas: 3, uploads: { bucket: 's3://uploads/berth' } } }, 's3://uploads/berth'],
      [{ s3, web: { replicas: 3 }, settings: { BERTH_BLOCKS_S3_URL } }, undefined],
    ] as const) {
      const all = await made(values)
      assert.deepEqual(
        podOf(all, 'web').volumes.map(({ name, ...kind }: any) => [name, kind]),
        [
          ['tmp', { emptyDir: {} }],
          ['data', { emptyDir: {} }],
        ],
      )
      const mounts = containerOf(all, 'web').volumeMounts.map((one: any) => one.name)
      assert.deepEqual(mounts, ['tmp', 'data'])
      assert.equal(environmentOf(all, 'web').BERTH_UPLOAD_DIR, place)
      for (const role of ['web', 'worker'])
        assert.deepEqual(containerOf(all, role).envFrom, [{ secretRef: { name: 'bucket' } }])
      assert.equal(find(all, 'Deployment', 'berth-web').spec.replicas, 3)
    }
  })

  it('a Berth with its blocks in S3 needs no address of a Kubo', async () => {
    const optional = async (values: Values) => {
      const { env } = containerOf(await made(values), 'worker')
      return env.find((one: any) => one.name === 'IPFS_API_URL').valueFrom.secretKeyRef.optional
    }
    assert.equal(await optional({}), undefined)
    assert.equal(await optional({ settings: { BERTH_BLOCKS_S3_URL: 's3://blocks' } }), true)
  })

  it('Prometheus gets the alert rules, and each role under the job name that they use', async () => {
    const all = await made({
      metrics: {
        serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
        rules: { enabled: true },
      },
    })
    const monitor = find(all, 'ServiceMonitor', 'berth')
    assert.equal(monitor.metadata.labels?.release, 'prometheus')
    for (const role of ROLES) {
      const { metadata, spec } = find(all, 'Service', `berth-${role}-metrics`)
      assert.equal(metadata.labels?.[monitor.spec.jobLabel], `berth-${role}`)
      assert.equal(spec.clusterIP, 'None')
      assert.equal(environmentOf(all, role).BERTH_METRICS_PORT, '9464')
    }
    const rules = await readFile(new URL('deploy/prometheus/alerts.yml', ROOT), 'utf8')
    assert.deepEqual(find(all, 'PrometheusRule', 'berth').spec, parse(rules))
    const none = await made({ metrics: { enabled: false } })
    assert.deepEqual(
      namesOf(none, 'Service').filter((name) => name.endsWith('metrics')),
      [],
    )
    assert.equal(environmentOf(none, 'worker').BERTH_METRICS_PORT, '')
  })

  it('a pod for backups has all keys and the worker’s rights, if enabled', async () => {
    assert.equal(namesOf(await made(), 'Deployment').includes('berth-tools'), false)
    const all = await made({ tools: { enabled: true, environmentSecret: 'bucket' } })
    const { serviceAccountName, containers } = podOf(all, 'tools')
    assert.equal(serviceAccountName, 'berth-worker')
    assert.deepEqual(containers[0].envFrom, [{ secretRef: { name: 'bucket' } }])
    const names = containers[0].env.map((one: any) => one.name)
    for (const name of ['JWT_KEY', 'SECRETS_KEY', 'BERTH_BACKUP_PASSPHRASE']) assert.ok(names.includes(name))
    const tunnels = policyOf(all, 'agent-proxy').ingress[0].from
    assert.ok(JSON.stringify(tunnels).includes('"app.kubernetes.io/component":"tools"'))
  })

  it('a role’s values reach its pods', async () => {
    const placement = {
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'berth', operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      resources: { requests: { cpu: '2', memory: '1Gi' }, limits: { memory: '3Gi' } },
    }
    const all = await made({
      image: { ...NEEDED.image, tag: 'abc', pullPolicy: 'Always', pullSecrets: ['login'] },
      existingSecret: 'mine',
      web: { ...placement, service: { type: 'LoadBalancer', annotations: { a: 'b' } } },
      worker: placement,
      agentProxy: placement,
      migrate: { resources: placement.resources },
    })
    for (const role of ROLES) {
      const { nodeSelector, tolerations, affinity, containers, imagePullSecrets } = podOf(all, role)
      const [{ resources, image, imagePullPolicy }] = containers
      assert.deepEqual({ nodeSelector, tolerations, affinity, resources }, placement)
      assert.deepEqual([image, imagePullPolicy], ['registry.example.org/berth:abc', 'Always'])
      assert.deepEqual(imagePullSecrets, [{ name: 'login' }])
    }
    const { spec, metadata } = find(all, 'Service', 'berth-web')
    assert.deepEqual([spec.type, metadata.annotations], ['LoadBalancer', { a: 'b' }])
    assert.match(JSON.stringify(podOf(all, 'worker')), /"secretKeyRef":\{"name":"mine"/)
  })

  it('the chart package includes the files outside its folder', async (t) => {
    const dir = await useFolder('berth-package-', t)
    await helm('package', CHART, '--destination', dir)
    const chart = join(dir, `berth-${packageJson.version}.tgz`)
    assert.deepEqual(await render(NEEDED, { chart }), await made())
  })
})
