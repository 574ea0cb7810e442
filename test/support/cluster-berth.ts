/**
 * A whole Berth in a real cluster: deploy/chart with the image of the Dockerfile, on PostgreSQL, Redis, Kubo and a
 * model of this machine, which pods reach through the node's veth link.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import { buildClusterImage } from '../../src/openclaw/cluster-image.ts'
import { baseTar, contextFiles, packBerthImage } from './berth-image.ts'
import { ENGINE_VERSION, enginesDir, ensureEngines, OLDER_ENGINE_VERSION } from './engines.ts'
import { CHART, helm, helmWith, type Values } from './helm.ts'
import { writeImageArchive } from './image-archive.ts'
import { addresses, KUBECONFIG, kubectl, loadImages } from './kubernetes.ts'
import { freePort, type Running, run } from './processes.ts'
import { cli, type RealParts, type Stack, startParts } from './stack.ts'

/** On the node once {@link loadBerthImages} is done; `next` is the same image under another name, to update to. */
export const BERTH_IMAGE = { repository: 'berth.test/berth', tag: packageJson.version, next: 'next' } as const
/** The name of the engine images. */
export const ENGINE_IMAGE = 'berth.test/engine:{version}'
const ROLES = ['web', 'worker', 'agent-proxy'] as const

/** Puts the images of Berth and of the engines on the node, once for each start of the cluster and each change. */
export async function loadBerthImages({ engines }: { engines: boolean }): Promise<void> {
  const hash = createHash('sha256')
  for (const file of await contextFiles()) hash.update(await readFile(file).catch(() => ''))
  const stamp = hash.digest('hex')
  await once(`berth-image-${stamp}`, async (dir) => {
    const archive = join(dir, 'berth.tar')
    const { repository, tag, next } = BERTH_IMAGE
    await packBerthImage(
      archive,
      [tag, next].map((one) => `${repository}:${one}`),
    )
    await loadImages(archive)
  })
  if (!engines) return
  await once(`engine-images-${stamp}`, async (dir) => {
    const baseImage = await makeBase(dir)
    const versions = [ENGINE_VERSION, OLDER_ENGINE_VERSION]
    await ensureEngines(versions)
    for (const version of versions) {
      const archive = join(dir, `${version}.tar`)
      await buildClusterImage({
        version,
        baseImage,
        enginesDir,
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        name: ENGINE_IMAGE.replace('{version}', version),
        to: { archive },
      })
      await loadImages(archive)
    }
  })
}

/** Writes the archive of a base for engines into a folder. @returns its path. */
export async function makeBase(dir: string): Promise<string> {
  const base = join(dir, 'base.tar')
  await writeImageArchive(base, ['base:1'], [await baseTar()], {
    Env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
  })
  return base
}

/** Runs `work` unless a file next to the kubeconfig, which is deleted with the cluster, says that it is done. */
async function once(name: string, work: (dir: string) => Promise<void>): Promise<void> {
  const mark = join(dirname(KUBECONFIG ?? ''), name)
  if ((await readFile(mark, 'utf8').catch(() => null)) !== null) return
  const dir = await mkdtemp(join(tmpdir(), 'berth-images-'))
  try {
    await work(dir)
    await writeFile(mark, '')
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** Servers of this machine, and their addresses for pods. */
export interface Outside {
  parts: RealParts
  /** Secrets of Berth, as processes of this machine need them. */
  here: Record<string, string>
  /** The same for pods. */
  inPods: Record<string, string>
  /** Makes a port of this machine's loopback reachable for pods, as a URL. */
  expose(url: string): Promise<string>
  /** This machine, as a peer of a NetworkPolicy. */
  peer: { ipBlock: { cidr: string } }
  stop(): Promise<void>
}

export async function startOutside(): Promise<Outside> {
  const { machine } = await addresses()
  const parts = await startParts()
  const forwards: Forward[] = []
  const expose = async (text: string) => {
    const url = new URL(text)
    const made = await forward(machine, 0, { host: '127.0.0.1', port: Number(url.port) })
    forwards.push(made)
    url.hostname = machine
    url.port = String(made.port)
    return url.href.replace(/\/$/, '')
  }
  const urls = {
    DATABASE_URL: parts.postgres.url,
    REDIS_URL: parts.redis.url,
    IPFS_API_URL: parts.kubo.apiUrl,
    IPFS_PRIVATE_API_URL: parts.privateKubo.apiUrl,
  }
  const keys = Object.fromEntries(
    ['JWT_KEY', 'SECRETS_KEY', 'AGENT_PROXY_KEY'].map((name) => [name, randomBytes(32).toString('hex')]),
  )
  const inPods: Record<string, string> = { ...keys }
  for (const [name, url] of Object.entries(urls)) inPods[name] = await expose(url)
  return {
    parts,
    here: { ...urls, ...keys },
    inPods,
    expose,
    peer: { ipBlock: { cidr: `${machine}/32` } },
    async stop() {
      await Promise.all(forwards.map((one) => one.close()))
      await Promise.all(Object.values(parts).map((part) => part.stop()))
    },
  }
}

export interface Forward {
  port: number
  close(): Promise<void>
}

/** Forwards connections to an address of this machine to another address. */
export async function forward(
  host: string,
  port: number,
  target: { host: string; port: number },
): Promise<Forward> {
  const open = new Set<Socket>()
  const server: Server = createServer((client) => {
    const upstream = connect(target)
    const both: [Socket, Socket][] = [
      [client, upstream],
      [upstream, client],
    ]
    for (const [one, other] of both) {
      open.add(one)
      one.on('error', () => {})
      one.once('close', () => {
        open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen({ host, port }, () => resolve()),
  )
  const address = server.address()
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const one of open) one.destroy()
      }),
  }
}

/** Small, so that many of them fit on one small node. */
const SMALL = { resources: { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '1Gi' } } }

/** The chart's values for tests: each Berth has a separate namespace for its agents. */
export function valuesFor(outside: Outside, options: { namespace: string; publicUrl: string }): Values {
  return {
    image: { repository: BERTH_IMAGE.repository, tag: BERTH_IMAGE.tag },
    publicUrl: options.publicUrl,
    agents: { engineImage: ENGINE_IMAGE, namespace: `${options.namespace}-agents` },
    networkPolicy: { agentProxyAllow: [outside.peer] },
    web: { ...SMALL, stopSeconds: 3 },
    worker: SMALL,
    agentProxy: { ...SMALL, stopSeconds: 3, drainSeconds: 5 },
    migrate: SMALL,
  }
}

/** Creates a namespace with the Secret that the chart uses. */
export async function makeSecret(namespace: string, secrets: Record<string, string>): Promise<void> {
  await kubectl('create', 'namespace', namespace)
  const literals = Object.entries(secrets).map(([name, value]) => `--from-literal=${name}=${value}`)
  await kubectl('--namespace', namespace, 'create', 'secret', 'generic', 'berth', ...literals)
}

/** Has the agent proxies trust the certificates in a file of this machine. */
async function trust(namespace: string, file: string): Promise<void> {
  const [inNamespace, deployment] = [['--namespace', namespace], 'deployment/berth-agent-proxy']
  await kubectl(...inNamespace, 'create', 'configmap', 'trusted', `--from-file=ca.pem=${file}`)
  const volumes = [{ name: 'trusted', configMap: { name: 'trusted' } }]
  const container = {
    name: 'agent-proxy',
    env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/trusted/ca.pem' }],
    volumeMounts: [{ name: 'trusted', mountPath: '/trusted' }],
  }
  const patch = { spec: { template: { spec: { volumes, containers: [container] } } } }
  await kubectl(...inNamespace, 'patch', deployment, '--patch', JSON.stringify(patch))
  await kubectl(...inNamespace, 'rollout', 'status', deployment, '--timeout=50s')
}

/**
 * A Berth in the cluster for a black-box test, on loopback like those of `npm start`.
 * @param env settings, of which the model's key is a secret. Pods reach services on loopback, such as the model, at
 * another address. NODE_EXTRA_CA_CERTS counts for the agent proxies.
 */
export async function startInCluster(env: Record<string, string>): Promise<Stack> {
  await loadBerthImages({ engines: true })
  const outside = await startOutside()
  const namespace = `berth-${randomBytes(4).toString('hex')}`
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const { BERTH_MODEL_KEY = '', NODE_EXTRA_CA_CERTS: trusted, ...settings } = env
  const exposed: Record<string, string> = {}
  for (const [name, value] of Object.entries(settings))
    if (value.startsWith('http://127.0.0.1:')) exposed[name] = await outside.expose(value)
  await makeSecret(namespace, { ...outside.inPods, BERTH_MODEL_KEY })
  const release = (command: 'install' | 'upgrade') => {
    const now = Object.fromEntries(Object.keys(settings).map((name) => [name, own[name]]))
    const values = {
      ...valuesFor(outside, { namespace, publicUrl: url }),
      settings: { BERTH_KUBERNETES_REQUEST_PERCENT: '1', ...now, ...exposed },
    }
    return helmWith(values, command, 'berth', CHART, '--namespace', namespace, '--wait', '--timeout', '4m')
  }
  const own: NodeJS.ProcessEnv = {
    ...process.env,
    ...env,
    ...outside.here,
    PUBLIC_URL: url,
    PORT: String(port),
    BERTH_RUNTIME: 'kubernetes',
    BERTH_KUBERNETES_CONFIG: KUBECONFIG,
    BERTH_KUBERNETES_NAMESPACE: `${namespace}-agents`,
    BERTH_ENGINE_IMAGE: ENGINE_IMAGE,
    // The setting must be present but is not used: no agents are created on this machine.
    BERTH_EGRESS_URL: 'http://127.0.0.1:3128',
  }
  await release('install')
  if (trusted) await trust(namespace, trusted)
  const host = await kubectl(
    ...['--namespace', namespace, 'get', 'service', 'berth-web', '--output', 'jsonpath={.spec.clusterIP}'],
  )
  const way = await forward('127.0.0.1', port, { host, port: 3000 })
  const logs: Running[] = ROLES.map((role) =>
    run('kubectl', ['--namespace', namespace, 'logs', '--follow', '--tail=-1', `deployment/berth-${role}`], {
      env: { ...process.env, KUBECONFIG },
    }),
  )
  const berth = cli(own)
  await berth('workspaces', 'create', 'default', '--plan', 'unlimited')
  // As for the first user of `npm start`.
  await berth('users', 'admin', 'owner')
  return {
    kind: 'kubernetes',
    env: own,
    url,
    dataDir: '',
    parts: outside.parts,
    berth,
    createKey: (...args) => berth('keys', 'create', ...args),
    output: () => logs.map((one) => one.output()).join(''),
    pidOf: () => Promise.reject(new Error('A Berth in a cluster is no process of this machine')),
    async kill() {
      const pods = [
        'delete',
        'pods',
        '--selector',
        'app.kubernetes.io/name=berth',
        '--grace-period=0',
        '--force',
      ]
      await kubectl('--namespace', namespace, ...pods)
    },
    async restart() {
      await release('upgrade')
    },
    async stop() {
      await Promise.all(logs.map((one) => one.end()))
      await way.close()
      await helm('uninstall', 'berth', '--namespace', namespace, '--wait')
      await kubectl('delete', 'namespace', namespace, `${namespace}-agents`, '--wait=false')
      await outside.stop()
    },
  }
}
