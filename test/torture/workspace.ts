/** The workspace of one agent under fire: its repository, its history, and the parts of it that are on IPFS. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { CID } from 'multiformats/cid'
import { loadConfig } from '../../src/config.ts'
import { Closers } from '../../src/lib/closers.ts'
import { createLogger } from '../../src/log.ts'
import { walkFolder } from '../../src/storage/dag/folder.ts'
import { openStorages, type Storages } from '../../src/storage/open.ts'
import { until } from '../support/processes.ts'
import type { AgentWorld } from './agent-world.ts'

const LIMIT_MS = 240_000
const GIT_MS = 240_000

interface Row {
  cid: string
  commit_sha: string
  executables: string[]
}

export class Workspace {
  readonly agents: AgentWorld
  readonly agentId: string
  readonly #storages: Storages
  readonly #parts: Closers

  private constructor(agents: AgentWorld, agentId: string, storages: Storages, parts: Closers) {
    this.agents = agents
    this.agentId = agentId
    this.#storages = storages
    this.#parts = parts
  }

  /** Creates an agent, and waits until it responds. */
  static async create(agents: AgentWorld): Promise<Workspace> {
    const agentId = await agents.create()
    await agents.answers(agentId)
    const log = createLogger('torture', 'silent')
    const parts = new Closers(log)
    const storages = await openStorages(loadConfig(agents.world.env), 'web', log, parts)
    return new Workspace(agents, agentId, storages, parts)
  }

  close(): Promise<void> {
    return this.#parts.close()
  }

  /** Runs a command in the agent's root, as soon as possible. */
  async exec(command: string): Promise<string> {
    return await until(
      `\`${command}\` can be run`,
      async () => await this.agents.exec(this.agentId, command),
      LIMIT_MS,
    )
  }

  /** Starts an operation without waiting for it. */
  async start(path: string, body?: unknown): Promise<void> {
    const response = await this.agents.insist('POST', `/v0/agents/${this.agentId}${path}`, body, {
      prefer: 'respond-async',
    })
    assert.ok([200, 202].includes(response.status), `${path}: ${response.status} ${await response.text()}`)
  }

  async head(): Promise<string> {
    return (await this.exec('git rev-parse HEAD')).trim()
  }

  /** The history in the database, newest first. */
  history(): Promise<Row[]> {
    return this.agents.world.query<Row>(
      `SELECT s.cid, s.commit_sha, s.executables FROM snapshot s JOIN agent a ON a.id = s.agent_id
       WHERE a.agent_id = '${this.agentId}' ORDER BY s.id DESC`,
    )
  }

  /** The real git of this machine, with the agent's repository in place of `URL` in `args`. */
  async git(...args: string[]): Promise<string> {
    const { gatewayToken } = await this.agents.read(this.agentId)
    const { host } = new URL(this.agents.world.url)
    const url = `http://x:${gatewayToken}@${host}/v0/agents/${this.agentId}/git`
    const identity = ['-c', 'user.name=Torture', '-c', 'user.email=torture@example.test']
    const { stdout } = await promisify(execFile)(
      'git',
      [...identity, ...args.map((arg) => (arg === 'URL' ? url : arg))],
      { timeout: GIT_MS, maxBuffer: 50_000_000, env: { ...process.env, GIT_TERMINAL_PROMPT: '0' } },
    )
    return stdout.trim()
  }

  /**
   * Every snapshot is pinned, the newest is the agent's HEAD, and its files equal those of the commit, byte by byte.
   */
  async assertHistory(): Promise<void> {
    const history = await this.history()
    assert.ok(history[0])
    assert.equal(history[0].commit_sha, await this.head())
    for (const { cid } of history) {
      const signal = AbortSignal.timeout(LIMIT_MS)
      assert.ok(await this.#storages.private.isPinned(CID.parse(cid), { signal }), `${cid} is not pinned`)
    }
    for (const row of history) await this.assertTree(row)
  }

  /** Asserts that the content of a snapshot on IPFS is the tree of its commit. */
  async assertTree({ cid, commit_sha, executables }: Row): Promise<void> {
    const stored = new Map<string, string>()
    const signal = AbortSignal.timeout(LIMIT_MS)
    for await (const entry of walkFolder(this.#storages.private, CID.parse(cid), { signal })) {
      const chunks: Uint8Array[] = []
      for await (const chunk of entry.content()) chunks.push(chunk)
      const bytes = Buffer.concat(chunks)
      const blob = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
      const link = entry.type === 'symlink' ? '120000' : undefined
      const mode = link ?? (executables.includes(entry.path) ? '100755' : '100644')
      stored.set(entry.path, `${mode} ${blob}`)
    }
    const listed = new Map<string, string>()
    for (const line of (await this.exec(`git ls-tree -r -z ${commit_sha}`)).split('\0').filter(Boolean)) {
      const [, mode, blob, path] = /^(\d+) blob ([0-9a-f]+)\t(.*)$/s.exec(line) ?? assert.fail(line)
      listed.set(String(path), `${mode} ${blob}`)
    }
    assert.deepEqual(stored, listed)
  }
}
