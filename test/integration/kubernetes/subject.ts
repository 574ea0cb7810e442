/** A test namespace for agents, created as in deploy/kubernetes, and the driver with the worker's own rights. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { Cluster } from '../../../src/sandboxes/kubernetes/cluster.ts'
import { type KubernetesOptions, KubernetesRuntime } from '../../../src/sandboxes/kubernetes.ts'
import { BASE_IMAGE, docker } from '../../support/docker.ts'
import { addresses, apply, kubectl, loadImages, removeNamespace } from '../../support/kubernetes.ts'
import { ownerOf } from '../sandboxes/docker-subject.ts'
import { type Subject, VERSIONS } from '../sandboxes/subject.ts'

const run = promisify(execFile)
const RIGHTS = new URL('../../../deploy/kubernetes/agents.yaml', import.meta.url)
const IMAGE = 'berth.test/openclaw'

/** The time for a node to recover after programs of the cluster were killed, possibly by an earlier test. */
export const BACK_MS = 180_000

export interface Ground {
  namespace: string
  /** Path of a kubeconfig with the worker's token. */
  kubeconfig: string
  remove(): Promise<void>
}

/** Creates a namespace with everything that an operator applies, and a token of the worker's account. */
export async function makeGround(): Promise<Ground> {
  await testImages()
  const namespace = `agents-${randomBytes(4).toString('hex')}`
  const text = (await readFile(RIGHTS, 'utf8')).replaceAll('berth-agents', namespace)
  const objects = parseAllDocuments(text).map((document) => document.toJS() as object)
  const subject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: `${namespace}-berth` } }
  const account = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'berth-worker', namespace: `${namespace}-berth` },
  }
  const bound = JSON.parse(
    JSON.stringify(objects).replaceAll('"namespace":"berth"', `"namespace":"${namespace}-berth"`),
  )
  await apply(subject, account, ...bound)
  const token = await kubectl(
    '--namespace',
    `${namespace}-berth`,
    'create',
    'token',
    'berth-worker',
    '--duration=4h',
  )
  const folder = await mkdtemp(join(tmpdir(), 'berth-kubeconfig-'))
  const kubeconfig = join(folder, 'config')
  await writeFile(kubeconfig, await withToken(token), { mode: 0o600 })
  return {
    namespace,
    kubeconfig,
    async remove() {
      await Promise.all([namespace, `${namespace}-berth`].map(removeNamespace))
      await rm(folder, { recursive: true })
    },
  }
}

async function withToken(token: string): Promise<string> {
  const config = JSON.parse(await kubectl('config', 'view', '--raw', '--minify', '--output', 'json')) as {
    users: { user: object }[]
  }
  for (const one of config.users) one.user = { token }
  return JSON.stringify(config)
}

/** Options of a driver with a new instance. */
export async function newOptions(
  { namespace, kubeconfig }: Ground,
  changes: Partial<KubernetesOptions> = {},
): Promise<KubernetesOptions> {
  const { machine } = await addresses()
  return {
    cluster: new Cluster(kubeconfig, namespace),
    owner: ownerOf(`test-${randomBytes(4).toString('hex')}`),
    versions: [...VERSIONS],
    pods: {
      image: `${IMAGE}:{version}`,
      template: { serviceAccountName: 'berth-agent' },
      requestPercent: 25,
      egressUrl: `http://${machine}:3128`,
      openNetwork: false,
      guardSeconds: 30,
    },
    proxy: { labels: {}, namespace, networks: [`${machine}/32`] },
    startMs: BACK_MS,
    ...changes,
  }
}

export async function openSubject(): Promise<Subject> {
  const ground = await makeGround()
  const [one, two] = [await newOptions(ground), await newOptions(ground)]
  const all = [new KubernetesRuntime(one), new KubernetesRuntime(two), new KubernetesRuntime(one)] as const
  const [runtime, stranger, colleague] = all
  return {
    runtime,
    stranger,
    colleague,
    async close() {
      await Promise.all(all.map((driver) => driver.close()))
      await ground.remove()
    },
  }
}

let made: Promise<void> | undefined

/** Puts images of the agentd stand-in on the node, once. */
function testImages(): Promise<void> {
  made ??= buildImages()
  return made
}

async function buildImages(): Promise<void> {
  const context = await mkdtemp(join(tmpdir(), 'berth-image-'))
  const names = VERSIONS.map((version) => `${IMAGE}:${version}`)
  try {
    await mkdir(join(context, 'openclaw/node_modules/openclaw'), { recursive: true })
    await cp(join(import.meta.dirname, '../sandboxes/agentd'), join(context, 'agentd'), { recursive: true })
    const build = async (name: string, recipe: string) => {
      await writeFile(join(context, 'Dockerfile'), recipe)
      const stream = await docker.buildImage(
        { context, src: ['Dockerfile', 'agentd', 'openclaw'] },
        { t: name, version: '1', networkmode: 'none', forcerm: true },
      )
      await new Promise<void>((resolve, reject) => {
        docker.modem.followProgress(stream, (error) => (error ? reject(error) : resolve()))
      })
    }
    const onBase = `FROM ${BASE_IMAGE}
COPY openclaw /opt/openclaw
RUN mkdir -p /opt/openclaw/node_modules/openclaw
COPY agentd /opt/agentd
USER node
`
    const [typed, plain] = names as [string, string]
    await build(typed, onBase)
    // As in the images of `berth engines build`.
    const main = join(context, 'agentd/main.ts')
    await writeFile(join(context, 'agentd/main.js'), stripTypeScriptTypes(await readFile(main, 'utf8')))
    await writeFile(join(context, 'agentd/package.json'), '{ "type": "module" }')
    await rm(main)
    await build(plain, onBase)
    await run('docker', ['save', '--output', join(context, 'images.tar'), ...names])
    await loadImages(join(context, 'images.tar'))
  } finally {
    for (const name of names)
      await docker
        .getImage(name)
        .remove({ force: true })
        .catch(() => {})
    await rm(context, { recursive: true })
  }
}
