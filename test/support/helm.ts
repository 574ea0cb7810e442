/** Helm for tests: what the chart of deploy/chart renders, and its installs. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { KUBECONFIG } from './kubernetes.ts'

const binary = process.env.BERTH_TEST_HELM || undefined
/** Why chart tests cannot run here; false if they can. */
export const withoutHelm = !binary && 'needs BERTH_TEST_HELM (scripts/ci/helm.sh)'

export const CHART = fileURLToPath(new URL('../../deploy/chart', import.meta.url))
const TIMEOUT_MS = 300_000
const run = promisify(execFile)

export type Values = Record<string, unknown>

/** An object that the chart renders. */
export interface Made {
  kind: string
  metadata: {
    name: string
    namespace?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
  }
  spec?: any
  [field: string]: any
}

/** Runs helm. @returns its output. @throws with its error output if it fails. */
export async function helm(...args: string[]): Promise<string> {
  if (!binary) throw new Error('BERTH_TEST_HELM is not set')
  const env = { ...process.env, KUBECONFIG }
  return (await run(binary, args, { env, timeout: TIMEOUT_MS, maxBuffer: 2 ** 24 })).stdout
}

/** Runs helm with values in a file. */
export async function helmWith(values: Values, ...args: string[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-values-'))
  try {
    const file = join(dir, 'values.yaml')
    // JSON is YAML.
    await writeFile(file, JSON.stringify(values))
    return await helm(...args, '--values', file)
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** The version that templates are rendered for: without it, a Helm that was built by hand uses an old one. */
const FOR_CLUSTER = ['--kube-version', '1.34.0']

export const lint = (values: Values) => helmWith(values, 'lint', '--strict', CHART, ...FOR_CLUSTER)

/** The objects of a chart, including hooks. */
export async function render(
  values: Values,
  { release = 'berth', namespace = 'berth-system', chart = CHART } = {},
): Promise<Made[]> {
  const text = await helmWith(
    values,
    ...['template', release, chart, '--namespace', namespace],
    ...FOR_CLUSTER,
  )
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Made | null)
    .filter((made) => made !== null)
}
