/** A real agentd with an agent's root, and helpers that act like the agent and the worker. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, beforeEach } from 'node:test'
import type { AgentdConfig } from '../../../agentd/protocol.ts'
import type { CommitRequest, Committed, RepositoryStatus } from '../../../agentd/repository/protocol.ts'
import { standInEngine, TestAgentd } from './agentd.ts'

export class RepositoryWorld {
  readonly agentd: TestAgentd

  private constructor(agentd: TestAgentd) {
    this.agentd = agentd
  }

  static async start(options: Partial<AgentdConfig> = {}): Promise<RepositoryWorld> {
    const world = new RepositoryWorld(
      await TestAgentd.start({ engineDir: await standInEngine(), ...options }),
    )
    await world.tellSecrets()
    return world
  }

  /** Restarts agentd after it was killed. */
  async boot(): Promise<void> {
    await this.agentd.boot()
    await this.tellSecrets()
  }

  /** Starts the gateway with these secrets and stops it again, so that agentd knows them. */
  async tellSecrets(env: Record<string, string> = {}): Promise<void> {
    const run = randomUUID()
    await this.agentd.start({ env, run })
    await this.agentd.until(
      'ready',
      60_000,
      ({ gateway }) => gateway.run === run && gateway.state === 'ready',
    )
    await this.agentd.call('DELETE', '/v1/gateway', { epoch: 1 })
  }

  get root(): string {
    return join(this.agentd.home, 'clawd')
  }

  /** An empty root with a repository. */
  async anew(): Promise<void> {
    // agentd may be packing its objects.
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 })
    const made = await this.agentd.call('PUT', '/v1/workspace', { json: { files: [] }, epoch: 1 })
    assert.equal(made.status, 200)
  }

  /** Runs git in the root, as the agent itself would. */
  git = (...args: string[]): string => {
    const name = ['-c', 'user.name=Agent', '-c', 'user.email=agent@example.com']
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe']
    return execFileSync('git', [...name, ...args], { cwd: this.root, stdio })
      .toString()
      .trim()
  }

  put = async (path: string, content: string | Buffer): Promise<void> => {
    await mkdir(dirname(join(this.root, path)), { recursive: true })
    await writeFile(join(this.root, path), content)
  }

  commit = async (request: Partial<CommitRequest> = {}): Promise<Committed> => {
    const json = { message: 'sync', ...request }
    const path = '/v1/repository/commit'
    const { status, body } = await this.agentd.call<Committed>('POST', path, { json, epoch: 1 })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }

  status = async (): Promise<RepositoryStatus> => {
    const { status, body } = await this.agentd.call<RepositoryStatus>('GET', '/v1/repository')
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }

  files = (commit: string): string[] =>
    this.git('ls-tree', '-r', '--name-only', commit).split('\n').filter(Boolean)

  async close(): Promise<void> {
    await this.agentd.close()
    await rm(this.agentd.config.engineDir, { recursive: true })
  }
}

/** The agentd of a test file. Each test begins with an empty root with a repository. */
export async function useRepository(): Promise<RepositoryWorld> {
  const world = await RepositoryWorld.start()
  after(() => world.close())
  beforeEach(() => world.anew())
  return world
}
