/**
 * A whole Berth for a black-box test: `npm start`'s own supervisor in a new folder, on the embedded parts or on real
 * ones. `BERTH_TEST_STACK=real` selects the latter for every suite, and `BERTH_TEST_STACK=kubernetes` a Berth in a
 * cluster (cluster-berth.ts) for the contract suite.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startDatabase } from './database.ts'
import type { KuboNode } from './kubo.ts'
import { freeMetricsPorts, freePort, type Running, run, until } from './processes.ts'
import type { Server } from './servers.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The command that `npm start` runs. */
const START = [join(ROOT, 'bin/start.mjs'), 'start']
const CLI = join(ROOT, 'bin/berth.mjs')
const START_MS = 180_000

export type StackKind = 'embedded' | 'real' | 'kubernetes'
const KINDS: StackKind[] = ['real', 'kubernetes']
export const stackKind = KINDS.find((kind) => kind === process.env.BERTH_TEST_STACK) ?? 'embedded'

export interface RealParts {
  postgres: Server
  redis: Server
  kubo: KuboNode
  /** The node of the private network, which has no peers. */
  privateKubo: KuboNode
}

type PartDirs = Partial<Record<keyof RealParts, string>>

export interface Stack {
  readonly kind: StackKind
  /** The environment of its processes and of `berth`. */
  readonly env: NodeJS.ProcessEnv
  readonly url: string
  readonly dataDir: string
  /** Its real parts, if it has any. */
  readonly parts: RealParts | undefined
  /** Runs `berth <args>` against this stack; resolves to its output. */
  berth(...args: string[]): Promise<string>
  /** A new API key, with all scopes of the first workspace unless given. */
  createKey(...args: string[]): Promise<string>
  /** Everything that the processes have logged so far. */
  output(): string
  /** The process of a role, once it runs. */
  pidOf(role: 'web' | 'worker' | 'agent-proxy'): Promise<number>
  /** SIGKILL of the supervisor and of every role. */
  kill(): Promise<void>
  /** Restarts it on the same data. */
  restart(): Promise<void>
  /** Ctrl-C, then removes its data. */
  stop(): Promise<void>
}

/** The metrics of a role, from its port. */
export async function readMetrics(
  env: NodeJS.ProcessEnv,
  role: 'web' | 'worker' | 'agent-proxy',
): Promise<Response> {
  const port = Number(env.BERTH_METRICS_PORT) + ['web', 'worker', 'agent-proxy'].indexOf(role)
  return fetch(`http://127.0.0.1:${port}/metrics`)
}

/**
 * @param options.env settings in addition to those that every test needs.
 * @param options.dir the parent of its data folder.
 * @param options.partDirs the parent of the data folders of real parts.
 * @param options.database `of the run` for a test that is not about the embedded PostgreSQL: a database on the run's
 * server takes half a second of processor time, a separate server three.
 */
export async function startStack(
  options: {
    kind?: StackKind
    env?: NodeJS.ProcessEnv
    dir?: string
    partDirs?: PartDirs
    database?: 'own' | 'of the run'
  } = {},
): Promise<Stack> {
  const kind = options.kind ?? stackKind
  const dataDir = await mkdtemp(join(options.dir ?? tmpdir(), 'berth-'))
  // If the test runs as root, PostgreSQL runs as another user, who must be able to enter.
  await chmod(dataDir, 0o711)
  const port = await freePort()
  const parts = kind === 'real' ? await startParts(options.partDirs) : undefined
  const database = !parts && options.database === 'of the run' ? await startDatabase() : undefined
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    PORT: String(port),
    BERTH_DATA_DIR: dataDir,
    BERTH_IPFS_ROUTING_URL: '',
    BERTH_ALLOW_PRIVATE_HOST_NODES: 'true',
    // If the tests run as an ordinary user without namespaces.
    BERTH_AGENTS_READ_KEYS: 'accept',
    BERTH_METRICS_PORT: String(await freeMetricsPorts()),
    // The usual port may be taken by another Berth of the machine's tests while this one is down.
    BERTH_EGRESS_PORT: String(await freePort()),
    ...(parts && {
      DATABASE_URL: parts.postgres.url,
      REDIS_URL: parts.redis.url,
      IPFS_API_URL: parts.kubo.apiUrl,
      IPFS_PRIVATE_API_URL: parts.privateKubo.apiUrl,
    }),
    ...(database && { DATABASE_URL: database.url }),
    ...options.env,
  }
  const url = `http://127.0.0.1:${port}`
  let supervisor: Running | undefined
  const restart = async () => {
    const started = run(process.execPath, START, { env, group: true })
    supervisor = started
    await until(
      `Berth is ready`,
      async () => {
        if (started.process.exitCode !== null) throw new Error(started.output())
        return (await fetch(`${url}/readyz`)).ok && started.output().includes('Berth is up')
      },
      START_MS,
    ).catch((error) => {
      throw new Error(`${error.message}\n${started.output()}`, { cause: error })
    })
  }
  const stop = async () => {
    await supervisor?.end('SIGINT')
    await Promise.all(parts ? Object.values(parts).map((part) => part.stop()) : [])
    await database?.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  await restart().catch(async (error) => {
    await stop()
    throw error
  })
  // Roles lead their own sessions; the supervisor records them.
  const roles = async (): Promise<{ pid: number }[]> =>
    JSON.parse(await readFile(join(dataDir, 'roles.json'), 'utf8'))
  const berth = cli(env)
  return {
    kind,
    env,
    url,
    dataDir,
    parts,
    berth,
    createKey: (...args) => berth('keys', 'create', ...args),
    output: () => supervisor?.output() ?? '',
    pidOf: (role) =>
      until(`${role} runs`, async () => {
        for (const { pid } of await roles()) {
          const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
          if (command.split('\0').includes(role)) return pid
        }
        return undefined
      }),
    async kill() {
      const running = await roles()
      // It is paused first: a role that saw its supervisor die would stop the agents in order.
      supervisor?.signal('SIGSTOP')
      for (const { pid } of running) killIfThere(pid)
      await supervisor?.end('SIGKILL')
    },
    restart,
    stop,
  }
}

/**
 * `berth` with the environment of a stack: resolves to its output, rejects if it fails.
 * @param dir of another version.
 */
export function cli(env: NodeJS.ProcessEnv, dir = ROOT): (...args: string[]) => Promise<string> {
  return async (...args) => {
    const { code, stdout, stderr } = await runCommand(join(dir, 'bin/berth.mjs'), env, args)
    if (code !== 0) throw new Error(`berth ${args.join(' ')}: ${stderr}`)
    return stdout.trim()
  }
}

/** Runs `berth <args>`; resolves to its exit code and output, even if it failed. */
export const runCli = (env: NodeJS.ProcessEnv, ...args: string[]) => runCommand(CLI, env, args)

async function runCommand(
  program: string,
  env: NodeJS.ProcessEnv,
  args: string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const done = await promisify(execFile)(process.execPath, [program, ...args], { env })
    return { code: 0, ...done }
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string }
  }
}

/** Runs `npm start` with settings that make it exit by itself. */
export async function startOnce(env: NodeJS.ProcessEnv): Promise<{ code: number | null; output: string }> {
  const started = run(process.execPath, START, { env, group: true })
  const deadline = setTimeout(() => started.end(), START_MS)
  await new Promise((resolve) => started.process.once('close', resolve))
  clearTimeout(deadline)
  return { code: started.process.exitCode, output: started.output() }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has exited by itself.
  }
}

/** Real servers for a test, on loopback. */
export async function startParts(dirs: PartDirs = {}): Promise<RealParts> {
  const { kuboBinary, startKubo } = await import('./kubo.ts')
  const { startPostgres, startRedis } = await import('./servers.ts')
  const [postgres, redis, kubo, privateKubo] = await Promise.all([
    startPostgres(dirs.postgres),
    startRedis(dirs.redis),
    startKubo(kuboBinary, dirs.kubo),
    startKubo(kuboBinary, dirs.privateKubo),
  ])
  return { postgres, redis, kubo, privateKubo }
}
