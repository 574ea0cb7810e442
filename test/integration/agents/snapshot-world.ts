/** Steps that workspace tests take with an agent, and helpers that read the results. */
import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { CID } from 'multiformats/cid'
import type { ExecResult } from '../../../agentd/protocol.ts'
import type { AgentOperation } from '../../../src/operations/catalog.ts'
import { walkFolder } from '../../../src/storage/dag/folder.ts'
import type { AgentsWorld } from './world.ts'

type Row = Record<string, unknown>

export interface SnapshotRow {
  id: string
  cid: string
  commit_sha: string
  executables: string[]
  change_summary: string | null
  content_diff: string | null
}

/** An agent with its repository. */
export class Subject {
  readonly world: AgentsWorld
  readonly made: { id: string; agentId: string }

  constructor(world: AgentsWorld, made: { id: string; agentId: string }) {
    this.world = world
    this.made = made
  }

  /** A running agent. */
  static async create(world: AgentsWorld): Promise<Subject> {
    const made = await world.create()
    const { state, error_cause: cause } = await world.run(made.operationId)
    assert.equal(state, 'succeeded', String(cause))
    return new Subject(world, made)
  }

  async row(): Promise<Row> {
    return this.world.agent(this.made.agentId)
  }

  /** Runs a command in the agent's root; resolves to what it printed. */
  async exec(command: string): Promise<string> {
    const address = String((await this.row()).address)
    const target = { agentId: this.made.agentId, address }
    const json = { command, cwd: '.', timeoutMs: 60_000, outputBytes: 1_000_000 }
    const options = { method: 'POST', path: '/v1/exec', json, timeoutMs: 65_000 }
    const result = await this.world.services.agentd.json<ExecResult>(target, options)
    assert.equal(result.exitCode, 0, result.stderr)
    return result.stdout.trim()
  }

  /** Runs an operation to its end. */
  async run(kind: AgentOperation, input?: Row): Promise<Row & { result: Row | null }> {
    return (await this.world.run(await this.world.insert(this.made, kind, input))) as Row & {
      result: Row | null
    }
  }

  /** Runs an operation that must succeed; resolves to its result. */
  async succeed(kind: AgentOperation, input?: Row): Promise<Row> {
    const { state, error_cause: cause, result } = await this.run(kind, input)
    assert.equal(state, 'succeeded', String(cause))
    return result ?? {}
  }

  /** The agent's snapshots, newest first. */
  async history(): Promise<SnapshotRow[]> {
    const { rows } = await this.world.database.pool.query<SnapshotRow>(
      'SELECT * FROM snapshot WHERE agent_id = $1 ORDER BY id DESC',
      [this.made.id],
    )
    return rows
  }

  /** Removes its container and its volume, as if by hand. */
  loseVolume(): Promise<void> {
    return this.world.runtime.remove(this.made.agentId, { volume: true })
  }
}

/** The texts of a snapshot's files by path, with links as `-> target`. */
export async function contentOf({ services }: AgentsWorld, cid: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  const signal = AbortSignal.timeout(60_000)
  for await (const entry of walkFolder(services.storages.private, CID.parse(cid), { signal }))
    files[entry.path] =
      entry.type === 'symlink' ? `-> ${entry.target}` : (await buffer(entry.content())).toString('utf8')
  return files
}
