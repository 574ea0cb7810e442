/** The repository of an agent, as its owner clones, changes and pushes it. */
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { useFolder } from '../../support/folder.ts'
import { gitClient } from '../../support/git-client.ts'
import { until } from '../../support/processes.ts'
import type { Context } from '../context.ts'
import type { TestAgent } from './context.ts'

const PUSH_MS = 120_000

export async function openRepository(context: Pick<Context, 'url' | 'sql'>, agent: TestAgent) {
  const home = await useFolder('berth-git-')
  const { git, done } = gitClient(home)

  /** The URL of an agent's repository, including a password. */
  function address(agentId: string, password: string | undefined, suffix = '.git'): string {
    const { host } = new URL(context.url)
    return `http://${password === undefined ? '' : `anybody:${password}@`}${host}/v0/agents/${agentId}${suffix}`
  }

  let clones = 0
  async function clone(password = agent.record.gatewayToken as string): Promise<string> {
    const dir = join(home, `clone-${clones++}`)
    await done(home, 'clone', '--quiet', address(agent.agentId, password), dir)
    return dir
  }

  async function commit(dir: string, files: Record<string, string | Buffer>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(dir, path, '..'), { recursive: true })
      await writeFile(join(dir, path), content)
    }
    await done(dir, 'add', '--all')
    await done(dir, 'commit', '--quiet', '--message', 'change')
  }

  /**
   * Pushes like a user: if the agent has committed something in the meantime, on top of that. Lines that both have
   * changed get the pushed version. @returns the commit.
   */
  async function push(dir: string): Promise<string> {
    for (let tries = 0; (await git(dir, 'push', 'origin', 'main')).code !== 0; tries++) {
      assert.ok(tries < 3, 'the push is refused repeatedly')
      // In a rebase, "theirs" are the commits that are put on top.
      await done(dir, 'pull', '--quiet', '--rebase', '--strategy-option=theirs', 'origin', 'main')
    }
    return (await done(dir, 'rev-parse', 'HEAD')).trim()
  }

  /** `manifest.json` of a clone with other parts. */
  async function manifest(dir: string, more: Record<string, unknown>): Promise<string> {
    return JSON.stringify({ ...JSON.parse(await readFile(join(dir, 'manifest.json'), 'utf8')), ...more })
  }

  /** The operation that applies a push, once it has ended. */
  async function takenOver(commitSha: string) {
    const found = await until(
      'the push is applied',
      async () => {
        const [row] = await context.sql(
          `SELECT id, state, error_cause, result FROM operation
           WHERE agent_id = $1 AND kind = 'agent.push' AND result->>'commitSha' = $2`,
          [agent.agentId, commitSha],
        )
        return row
      },
      PUSH_MS,
    )
    assert.equal(found.state, 'succeeded', String(found.error_cause))
    return found.result as { applied: string[]; problems: string[] }
  }

  /** The sync after a push writes the agent's current state into the manifest. */
  const synced = () =>
    until(
      'the operations of the agent have ended',
      async () => {
        const unended = await context.sql(
          `SELECT FROM operation WHERE agent_id = $1 AND state IN ('queued', 'running')`,
          [agent.agentId],
        )
        return unended.length === 0
      },
      PUSH_MS,
    )

  return { home, git, done, address, clone, commit, push, manifest, takenOver, synced }
}
