/** Tools that steps need besides Node, npm and git. CI installs or builds them once, if a due step needs them, into caches outside the checkout. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runLogged, type Step } from './step.ts'

/** A script that installs or builds something and prints its location in its last line. */
export interface Tool {
  run: string
  /** Variable that gets the last line. */
  variable?: string
  needs?: string[]
  /** Only one process at a time may install Debian packages; Go builds use all processors. */
  lane: 'packages' | 'builds'
}

const apt = (packages: string) =>
  `apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${packages}`

export const TOOLS: Record<string, Tool> = {
  servers: { run: 'scripts/ci/servers.sh', lane: 'packages' },
  browser: {
    // Ubuntu has no such package, and its runners have a browser.
    run: `command -v chromium-headless-shell chromium | grep -c . | grep -q 2 || {
      ${apt('chromium chromium-headless-shell')}; } || command -v chromium`,
    lane: 'packages',
  },
  dashboard: { run: 'npm ci --prefix dashboard --no-audit --no-fund', lane: 'packages' },
  btrfs: { run: `command -v mkfs.btrfs || { ${apt('btrfs-progs')}; }`, lane: 'packages' },
  docker: { run: 'scripts/ci/docker.sh', lane: 'packages' },
  engines: { run: 'scripts/ci/engines.sh', variable: 'BERTH_ENGINES_DIR', lane: 'packages' },
  base: {
    run: 'scripts/ci/base-image.sh',
    variable: 'BERTH_BASE_IMAGE',
    needs: ['docker'],
    lane: 'packages',
  },
  nodes: { run: 'scripts/ci/kubernetes/packages.sh', lane: 'packages' },
  kubo: { run: 'scripts/ci/kubo.sh', variable: 'BERTH_TEST_KUBO', lane: 'builds' },
  ipfsCluster: {
    run: 'scripts/ci/ipfs-cluster.sh',
    variable: 'BERTH_TEST_IPFS_CLUSTER',
    lane: 'builds',
  },
  pgbouncer: { run: 'scripts/ci/pgbouncer.sh', variable: 'BERTH_TEST_PGBOUNCER', lane: 'packages' },
  valkey: { run: 'scripts/ci/valkey.sh', variable: 'BERTH_TEST_VALKEY', lane: 'packages' },
  s3: { run: 'scripts/ci/versitygw.sh', variable: 'BERTH_TEST_S3', lane: 'builds' },
  caddy: { run: 'scripts/ci/caddy.sh', variable: 'BERTH_TEST_CADDY', lane: 'builds' },
  registry: { run: 'scripts/ci/registry.sh', variable: 'BERTH_TEST_REGISTRY', lane: 'builds' },
  helm: { run: 'scripts/ci/helm.sh', variable: 'BERTH_TEST_HELM', lane: 'builds' },
  kubernetes: {
    run: 'scripts/ci/kubernetes/build.sh',
    needs: ['nodes'],
    lane: 'builds',
  },
  images: {
    run: 'scripts/ci/compose.sh images',
    needs: ['docker', 'base', 'kubo', 'caddy'],
    lane: 'packages',
  },
}

/** The variables of each installed tool. A tool that failed rejects with its log. */
export type Prepared = ReadonlyMap<string, Promise<NodeJS.ProcessEnv>>

/** Names of the tools of steps, with the tools that these need, in the order of a table. */
function toolsOf(steps: Step[], tools: Record<string, Tool>): string[] {
  const wanted = new Set(steps.flatMap(({ needs = [] }) => needs))
  for (const name of wanted) for (const needed of tools[name]?.needs ?? []) wanted.add(needed)
  return Object.keys(tools).filter((name) => wanted.has(name))
}

/**
 * Starts to install the tools that steps need, one at a time in each lane and with lower priority.
 * @param options.dir the folder for their logs. @param options.done gets each installed tool, and the seconds it took.
 */
export function prepare(
  steps: Step[],
  tools: Record<string, Tool>,
  {
    dir,
    done,
    signal,
  }: { dir: string; done: (name: string, seconds: number) => void; signal?: AbortSignal | undefined },
): Prepared {
  const prepared = new Map<string, Promise<NodeJS.ProcessEnv>>()
  const lanes = new Map<string, Promise<unknown>>()
  for (const name of toolsOf(steps, tools)) {
    const { run, variable, needs = [], lane } = tools[name] as Tool
    const log = join(dir, `tool-${name}.log`)
    const install = async () => {
      await Promise.all(needs.map((needed) => prepared.get(needed)))
      const start = performance.now()
      const code = await runLogged(['nice', '-n', '4', 'bash', '-c', run], log, {
        env: process.env,
        signal,
      })
      const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
      if (code !== 0) throw new Error(`${name} could not be installed:\n${lines.slice(-150).join('\n')}`)
      done(name, (performance.now() - start) / 1000)
      return variable ? { [variable]: lines.at(-1) } : {}
    }
    const installed = (lanes.get(lane) ?? Promise.resolve()).then(install)
    const settled = installed.catch(() => {})
    lanes.set(lane, settled)
    prepared.set(name, installed)
  }
  return prepared
}
