/** A real cluster for tests, such as scripts/ci/kubernetes/start.sh starts: kubectl helpers, and its programs. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { until } from './processes.ts'

/** The path of the cluster's kubeconfig. */
export const KUBECONFIG = process.env.BERTH_TEST_KUBERNETES
/** Busybox: on the node since its start. */
export const BUSYBOX = 'berth.test/base:1'
/** Why the tests cannot run here; false if they can. */
export const whyNotKubernetes = KUBECONFIG
  ? false
  : 'BERTH_TEST_KUBERNETES names no kubeconfig (scripts/ci/kubernetes/start.sh)'

const SCRIPTS = fileURLToPath(new URL('../../scripts/ci/kubernetes', import.meta.url))
const TIMEOUT_MS = 60_000
const run = promisify(execFile)

/** Runs kubectl. @returns its output, trimmed. @throws with its error output if it fails. */
export async function kubectl(...args: string[]): Promise<string> {
  const env = { ...process.env, KUBECONFIG }
  return (await run('kubectl', args, { env, timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 })).stdout.trim()
}

export async function apply(...items: object[]): Promise<void> {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
  const applied = run('kubectl', ['apply', '-f', '-'], {
    env: { ...process.env, KUBECONFIG },
    timeout: TIMEOUT_MS,
    maxBuffer: 2 ** 26,
  })
  applied.child.stdin?.end(list)
  await applied
}

/** Creates a namespace for a test, in which pods can be created. Its creator deletes it. */
export async function makeNamespace(): Promise<string> {
  const name = `test-${randomBytes(4).toString('hex')}`
  await kubectl('create', 'namespace', name)
  // No pod can be created before the account that it runs as.
  await until('its account exists', () =>
    kubectl('--namespace', name, 'get', 'serviceaccount', 'default').then(Boolean, () => false),
  )
  return name
}

/** Removes a namespace without waiting; its objects are deleted later. */
export const removeNamespace = (name: string) => kubectl('delete', 'namespace', name, '--wait=false')

/** A part of an object, by a path such as `.status.podIP`. */
export const read = (namespace: string, object: string, path: string) =>
  kubectl('--namespace', namespace, 'get', object, '--output', `jsonpath={${path}}`)

/** SIGKILL of programs of the node, which restarts each of them. */
export const killPrograms = (...programs: string[]) => runScript('kill.sh', programs)

/** Pauses a program of the node, or resumes it. */
export const signalProgram = (signal: 'STOP' | 'CONT', program: string) =>
  runScript('kill.sh', [program], { SIGNAL: signal })

/** Puts images on the node, from archives as `docker save` writes them. */
export const loadImages = (...archives: string[]) => runScript('load.sh', archives)

/** Runs a script of scripts/ci/kubernetes, which must have started the cluster. */
async function runScript(name: string, args: string[], env: Record<string, string> = {}): Promise<void> {
  const [, number = '0'] = /kubernetes-(\d)\/kubeconfig$/.exec(KUBECONFIG ?? '') ?? []
  await run(join(SCRIPTS, name), args, { env: { ...process.env, ...env, BERTH_TEST_CLUSTER: number } })
}

/** Where the cluster's own components listen. */
export async function addresses() {
  const server = await kubectl(
    'config',
    'view',
    '--minify',
    '--output',
    'jsonpath={.clusters[0].cluster.server}',
  )
  const node = new URL(server).hostname
  return {
    node,
    /** This machine as pods reach it: the other end of the node's veth link. */
    machine: node.replace(/\d+$/, (last) => String(Number(last) - 1)),
    /** The API server as a Service. */
    api: await read('default', 'service/kubernetes', '.spec.clusterIP'),
    dns: await read('kube-system', 'service/kube-dns', '.spec.clusterIP'),
  }
}
