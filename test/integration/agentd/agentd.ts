/** A real agentd for tests, with its own home, and a client for it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { markedProcesses } from '../../../agentd/processes.ts'
import {
  type AgentdConfig,
  type AgentStatus,
  EPOCH_HEADER,
  type LogLine,
  type StartRequest,
} from '../../../agentd/protocol.ts'
import { freePort } from '../../support/processes.ts'

const MAIN = join(import.meta.dirname, '../../../agentd/main.ts')
export const TOKEN = 'token-of-agentd'

export interface HttpResponse<T = unknown> {
  status: number
  body: T
}

export class TestAgentd {
  readonly config: AgentdConfig
  readonly folder: string
  #child: ChildProcess | undefined
  #port = 0
  output = ''

  private constructor(folder: string, config: AgentdConfig) {
    this.folder = folder
    this.config = config
  }

  /** @param options.engineDir has a real engine, or a program that stands in for it. */
  static async start(options: { engineDir: string } & Partial<AgentdConfig>): Promise<TestAgentd> {
    const folder = await mkdtemp(join(tmpdir(), 'agentd-'))
    const home = join(folder, 'home')
    await mkdir(join(folder, 'tmp'))
    await mkdir(home)
    const agentd = new TestAgentd(folder, {
      agentId: 'xtest123',
      host: '127.0.0.1',
      port: 0,
      tokenHash: createHash('sha256').update(TOKEN).digest('hex'),
      home,
      gatewayPort: await freePort(),
      readyFile: join(folder, 'ready.json'),
      diskBytes: 2 ** 34,
      ...options,
    })
    await agentd.boot()
    return agentd
  }

  get home(): string {
    return this.config.home
  }

  get pid(): number {
    return this.#child?.pid as number
  }

  /** Starts agentd, including after it was killed. */
  async boot(): Promise<void> {
    await rm(this.config.readyFile as string, { force: true })
    const child = spawn(process.execPath, [MAIN], {
      env: {
        ...process.env,
        TMPDIR: join(this.folder, 'tmp'),
        OPERATOR_SECRET: 'operator-secret',
        AGENTD_CONFIG: JSON.stringify(this.config),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        this.output += chunk
      })
    this.#child = child
    const ready = await until('agentd listens', 60_000, async () => {
      if (child.exitCode !== null) throw new Error(`agentd ended: ${this.output}`)
      return JSON.parse(await readFile(this.config.readyFile as string, 'utf8').catch(() => 'null'))
    }).catch((error) => {
      // If an earlier hook has failed, no hook closes this process, and it would keep the test file from ending.
      child.kill('SIGKILL')
      throw error
    })
    this.#port = ready.port
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`
  }

  /** Sends a request with the token. Both bodies are JSON. */
  async call<T = unknown>(
    method: string,
    path: string,
    options: { json?: unknown; epoch?: number; signal?: AbortSignal } = {},
  ): Promise<HttpResponse<T>> {
    const response = await fetch(this.url(path), {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(options.epoch !== undefined && { [EPOCH_HEADER]: String(options.epoch) }),
      },
      ...(options.json !== undefined && { body: JSON.stringify(options.json) }),
      ...(options.signal && { signal: options.signal }),
    })
    return { status: response.status, body: (await response.json()) as T }
  }

  start(request: Partial<StartRequest>, epoch = 1): Promise<HttpResponse> {
    const json: StartRequest = {
      run: randomUUID(),
      env: {},
      gatewayToken: 'gateway-token',
      ownedConfig: {},
      defaultConfig: {},
      plugins: [],
      readyMs: 60_000,
      scripts: 'none',
      ...request,
    }
    return this.call('PUT', '/v1/gateway', { json, epoch })
  }

  async status(): Promise<AgentStatus> {
    return (await this.call<AgentStatus>('GET', '/v1/status')).body
  }

  /** Long-polls until the status satisfies `done`. */
  async until(what: string, ms: number, done: (status: AgentStatus) => boolean): Promise<AgentStatus> {
    const deadline = Date.now() + ms
    let status = await this.status()
    while (!done(status)) {
      const left = deadline - Date.now()
      if (left <= 0)
        throw new Error(`not in time: ${what}; ${JSON.stringify(status, null, 1)}\n${this.output}`)
      const path = `/v1/status?wait=${left}&version=${status.version}`
      status = (await this.call<AgentStatus>('GET', path)).body
    }
    return status
  }

  async logs(lines = 1000): Promise<LogLine[]> {
    return (await this.call<{ lines: LogLine[] }>('GET', `/v1/logs?lines=${lines}`)).body.lines
  }

  /** Resolves to agentd's exit code when it has ended. */
  kill(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child as ChildProcess
    return new Promise((resolve) => {
      const done = () => resolve(child.exitCode)
      if (child.exitCode !== null || child.signalCode !== null) return done()
      child.once('exit', done)
      child.kill(signal)
    })
  }

  async close(): Promise<void> {
    await this.kill('SIGTERM')
    await rm(this.folder, { recursive: true, force: true })
  }
}

/** A folder with the stand-in as its engine; the caller removes it. */
export async function standInEngine(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'engine-'))
  const place = join(folder, 'node_modules', 'openclaw')
  await mkdir(place, { recursive: true })
  await copyFile(join(import.meta.dirname, 'stand-in.mjs'), join(place, 'openclaw.mjs'))
  return folder
}

/** The processes of an agent: its gateway, its scripts and their children. */
export async function processesOf({ home }: TestAgentd): Promise<number[]> {
  return await markedProcesses([`OPENCLAW_STATE_DIR=${join(home, '.openclaw')}`])
}

/** Calls `check` until it returns something truthy. @throws if `ms` pass first. */
export async function until<T>(what: string, ms: number, check: () => Promise<T>): Promise<NonNullable<T>> {
  const deadline = Date.now() + ms
  for (;;) {
    const found = await check()
    if (found) return found
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
    await sleep(20)
  }
}
