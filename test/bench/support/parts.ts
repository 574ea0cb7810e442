/** Programs that benchmarks need besides Node.js: built or started once, by the scripts that `.ci/run` uses. */
import { execFile } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export type Part = 'servers' | 'kubo' | 's3' | 'docker' | 'engines' | 'cluster'

/**
 * Scripts in order. The last line of a script's output is the value of the variable, or a folder with programs in
 * `bin`.
 */
const SCRIPTS: Record<Part, { script: string; variable?: string; programs?: true }[]> = {
  servers: [{ script: 'servers.sh' }],
  kubo: [{ script: 'kubo.sh', variable: 'BERTH_TEST_KUBO' }],
  s3: [{ script: 'versitygw.sh', variable: 'BERTH_TEST_S3' }],
  docker: [{ script: 'docker.sh' }, { script: 'base-image.sh', variable: 'BERTH_BASE_IMAGE' }],
  engines: [{ script: 'engines.sh' }],
  cluster: [
    { script: 'kubernetes/build.sh', programs: true },
    { script: 'kubernetes/start.sh', variable: 'BERTH_TEST_KUBERNETES' },
    { script: 'helm.sh', variable: 'BERTH_TEST_HELM' },
  ],
}
const FOLDER = new URL('../../../scripts/ci/', import.meta.url)

/** A variable that the user has set stays unchanged. */
const given = { ...process.env }
const made = new Map<Part, Promise<NodeJS.ProcessEnv>>()

/**
 * Builds or starts parts, unless that was done before.
 * @returns the environment in which they are found. Without Docker it has no base image, so that nothing runs in
 * containers by chance.
 * @throws Error with the output of a script that fails.
 */
export async function prepare(parts: Part[]): Promise<NodeJS.ProcessEnv> {
  const env: NodeJS.ProcessEnv = { BERTH_BASE_IMAGE: 'none' }
  for (const part of parts) {
    const prepared = made.get(part) ?? runScripts(part)
    made.set(part, prepared)
    Object.assign(env, await prepared)
  }
  return env
}

async function runScripts(part: Part): Promise<NodeJS.ProcessEnv> {
  const env: NodeJS.ProcessEnv = {}
  for (const { script, variable, programs } of SCRIPTS[part]) {
    const value = variable && given[variable]
    if (variable && value && value !== 'none') {
      env[variable] = value
      continue
    }
    const { stdout } = await promisify(execFile)(fileURLToPath(new URL(script, FOLDER)), {
      maxBuffer: 2 ** 26,
    })
    const said = stdout.trim().split('\n').at(-1)
    if (variable) env[variable] = said
    if (programs) env.PATH = [join(said ?? '', 'bin'), given.PATH].join(delimiter)
  }
  return env
}
