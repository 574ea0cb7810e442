/** Syncs and resets of real repositories, on a real database and real storage, with a stand-in for the engine. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { findAgent } from '../../../src/agents/agent.ts'
import { deleteAgent } from '../../../src/agents/lifecycle/change.ts'
import { createLogger } from '../../../src/log.ts'
import { lookForChanges } from '../../../workers/reconcile/snapshots.ts'
import { until } from '../../support/processes.ts'
import { contentOf, Subject } from './snapshot-world.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

describe('a workspace', { timeout: 600_000 }, () => {
  let world: AgentsWorld
  let subject: Subject
  before(async () => {
    world = await startAgentsWorld({ BERTH_SNAPSHOT_KEEP: 'newest=4,days=0' })
    subject = await Subject.create(world)
  })
  after(() => world?.stop())

  const isPinned = (cid: string) =>
    world.services.storages.private.isPinned(CID.parse(cid), { signal: AbortSignal.timeout(60_000) })
  const head = () => subject.exec('git rev-parse HEAD')

  it("an agent's workspace has a first commit before its first sync", async () => {
    const subjects = await until('the first commit', () => subject.exec('git log --format=%s'))
    assert.equal(subjects, 'feat: begin workspace')
    assert.deepEqual(await subject.history(), [])
  })
  it("an agent's workspace is first saved as a whole", async () => {
    const result = await subject.succeed('agent.sync')
    const [row, ...others] = await subject.history()
    assert.ok(row)
    assert.deepEqual(others, [])
    assert.deepEqual([result.snapshotCid, result.commitSha, result.isNew], [row.cid, row.commit_sha, true])
    assert.match(String(result.changeSummary), /^\d+ added$/)
    assert.ok(row.content_diff?.includes('+++ b/workspace/SOUL.md'))
    const files = await contentOf(world, row.cid)
    assert.equal(files['workspace/AGENTS.md'], `${await subject.exec('cat workspace/AGENTS.md')}\n`)
    assert.ok(await isPinned(row.cid))
    const { synced_at, file_manifest } = await subject.row()
    assert.ok(synced_at)
    assert.match(String(file_manifest), /^\d+ README\.md$/m)
    assert.equal(await head(), row.commit_sha)
  })
  it('a sync lists the files that it left out, with the reasons [report: secrets in snapshots]', async () => {
    await subject.exec(
      'cd workspace && echo x > id_rsa && echo x > secretsanta.md && mkdir build && echo x > build/y && echo x > a.log',
    )
    const result = await subject.succeed('agent.sync')
    const leftOut = result.leftOut as string[]
    for (const line of [
      'workspace/id_rsa: files of this name usually hold secrets; the line !/workspace/id_rsa in .gitignore lets it in',
      'workspace/a.log: excluded by the rule *.log of .gitignore',
      'workspace/build/: excluded by the rule build/ of .gitignore',
    ])
      assert.ok(leftOut.includes(line), leftOut.join('\n'))
    const [row] = await subject.history()
    const files = await contentOf(world, row?.cid ?? '')
    assert.ok(files['workspace/secretsanta.md'])
    assert.equal(files['workspace/id_rsa'], undefined)
    await subject.exec('cd workspace && rm -r id_rsa secretsanta.md build a.log')
    await subject.succeed('agent.sync')
  })
  it("an agent's workspace is saved incrementally, with the same result as a full import", async () => {
    await subject.exec(
      'cd workspace && mkdir -p deep/er && echo one > deep/er/new.txt && echo more >> SOUL.md && rm TOOLS.md && ' +
        'printf "#!/bin/sh\\n" > run.sh && chmod +x run.sh && ln -s deep/er/new.txt link && echo x > "ünï \\"q\\".txt"',
    )
    const { changeSummary } = await subject.succeed('agent.sync')
    assert.equal(changeSummary, '4 added, 1 changed, 1 removed')
    const [row] = await subject.history()
    assert.ok(row)
    assert.ok(row.executables.includes('workspace/run.sh'))
    assert.ok(!row.executables.includes('workspace/SOUL.md'))
    assert.match(row.content_diff ?? '', /^\+more$/m)
    const files = await contentOf(world, row.cid)
    assert.equal(files['workspace/deep/er/new.txt'], 'one\n')
    assert.equal(files['workspace/link'], '-> deep/er/new.txt')
    assert.equal(files['workspace/ünï "q".txt'], 'x\n')
    assert.equal(files['workspace/TOOLS.md'], undefined)
    assert.deepEqual(
      Object.keys(files).sort(),
      (await subject.exec('git -c core.quotePath=false ls-files -z | tr "\\0" "\\n"')).split('\n').sort(),
    )
    // The same from scratch, on another network.
    await world.database.pool.query('UPDATE snapshot SET network = $2 WHERE agent_id = $1', [
      subject.made.id,
      'public',
    ])
    await subject.exec('git -c user.name=x -c user.email=x@y commit --quiet --allow-empty --message again')
    const { snapshotCid } = await subject.succeed('agent.sync')
    assert.equal(snapshotCid, row.cid)
    await world.database.pool.query('DELETE FROM snapshot WHERE agent_id = $1 AND network = $2', [
      subject.made.id,
      'public',
    ])
  })
  it("a snapshot of an agent's workspace reports where its diff was cut", async () => {
    await subject.exec('seq 1 40000 > workspace/long.txt')
    await subject.succeed('agent.sync')
    const [row] = await subject.history()
    assert.match(row?.content_diff ?? '', /\n… cut after 64 KiB\n$/)
    assert.ok(Buffer.byteLength(row?.content_diff ?? '') <= 65_536 + 100)
  })
  it("an agent's workspace is saved before it is reset to a snapshot", async () => {
    await subject.exec('echo kept > workspace/note.txt')
    await subject.succeed('agent.sync')
    const [target] = await subject.history()
    assert.ok(target)
    await subject.exec(
      `echo lost > workspace/note.txt; echo '{"scripts":{"build":"echo built > built.log"}}' > manifest.json`,
    )
    const result = await subject.succeed('agent.reset', { snapshotCid: target.cid })
    assert.deepEqual(result, { snapshotCid: target.cid, commitSha: target.commit_sha })
    assert.equal(await subject.exec('cat workspace/note.txt'), 'kept')
    assert.equal(await head(), target.commit_sha)
    const [now, saved, before] = await subject.history()
    assert.deepEqual([now?.cid, now?.commit_sha], [target.cid, target.commit_sha])
    assert.match(now?.content_diff ?? '', /^-lost\n\+kept$/m)
    assert.equal(before?.id, target.id)
    assert.equal((await contentOf(world, saved?.cid ?? ''))['workspace/note.txt'], 'lost\n')
    // And back to the saved one.
    await subject.succeed('agent.reset', { snapshotCid: saved?.cid })
    assert.equal(await subject.exec('cat workspace/note.txt'), 'lost')
    await until('it is built', () => subject.exec('cat built.log').catch(() => undefined))
  })
  it("an agent's workspace is the same after a second run of the same reset", async () => {
    const [, target] = await subject.history()
    const id = await world.insert(subject.made, 'agent.reset', { snapshotCid: target?.cid })
    assert.equal((await world.run(id)).state, 'succeeded')
    const ids = (await subject.history()).map((row) => row.id)
    await world.database.pool.query(
      `UPDATE operation SET state = 'queued', finished_at = NULL, next_attempt_at = now() WHERE id = $1`,
      [id],
    )
    assert.equal((await world.run(id)).state, 'succeeded')
    assert.deepEqual(
      (await subject.history()).map((row) => row.id),
      ids,
    )
    assert.equal(await head(), target?.commit_sha)
  })
  it("an agent's workspace can be reset to a commit that is no longer in its repository", async () => {
    const [target] = await subject.history()
    assert.ok(target)
    await subject.exec('rm -rf .git && echo anew > workspace/note.txt')
    await subject.succeed('agent.sync')
    assert.equal(await subject.exec('git rev-list --count HEAD'), '1')
    const { commitSha } = await subject.succeed('agent.reset', { snapshotCid: target.cid })
    assert.equal(commitSha, target.commit_sha)
    assert.equal(await head(), target.commit_sha)
    assert.equal(await subject.exec('git status --porcelain'), '')
    assert.equal(await subject.exec('git fsck --no-progress 2>&1 || true'), '')
  })
  it("an agent's workspace is saved once after a push, and a repeat returns the same result", async () => {
    const pushed = await head()
    await subject.exec(`echo '{"commit":"${pushed}"}' > ../.berth/pushed.json`)
    const id = await world.insert(subject.made, 'agent.push')
    const { state, result } = await world.run(id)
    assert.deepEqual([state, (result as { commitSha: string }).commitSha], ['succeeded', pushed])
    await assert.rejects(subject.exec('cat ../.berth/pushed.json'))
    await world.database.pool.query(
      `UPDATE operation SET state = 'queued', finished_at = NULL, next_attempt_at = now(), result = NULL WHERE id = $1`,
      [id],
    )
    assert.deepEqual((await world.run(id)).result, result)
    // Operations that the repeat has started.
    const { rows } = await world.database.pool.query<{ id: string; kind: string }>(
      `SELECT id, kind FROM operation WHERE agent_id = $1 AND state = 'queued' ORDER BY id`,
      [subject.made.agentId],
    )
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['agent.sync'],
    )
    await world.run(rows[0]?.id ?? '')
    assert.equal((await subject.succeed('agent.push')).commitSha, null)
  })
  it("an agent's workspace keeps as many snapshots as its policy says, and frees the rest", async () => {
    const cids: string[] = []
    for (let i = 0; i < 5; i++) {
      await subject.exec(`echo ${i} > workspace/counter.txt`)
      cids.push(String((await subject.succeed('agent.sync')).snapshotCid))
    }
    const kept = (await subject.history()).map(({ cid }) => cid)
    assert.deepEqual(kept, cids.slice(1).reverse())
    const released = async () => {
      const { rows } = await world.database.pool.query(
        `SELECT id FROM operation WHERE kind = 'content.release' AND state = 'queued' AND input->>'cid' = $1`,
        [cids[0]],
      )
      return rows
    }
    const [{ id }] = (await released()) as [{ id: string }]
    await world.run(id)
    assert.equal(await isPinned(cids[0] ?? ''), false)
    assert.equal(await isPinned(cids[1] ?? ''), true)
  })
  it("a changed agent's workspace is saved automatically, with longer pauses after failures", async () => {
    const log = createLogger('test', 'silent')
    const look = () =>
      lookForChanges(world.services, log, { intervalMs: 100, signal: AbortSignal.timeout(60_000) })
    const waiting = async () => {
      const { rows } = await world.database.pool.query(
        `SELECT id, kind FROM operation WHERE agent_id = $1 AND state = 'queued'`,
        [subject.made.agentId],
      )
      return rows as { id: string; kind: string }[]
    }
    await subject.succeed('agent.sync')
    await look()
    assert.deepEqual(await waiting(), [])
    await subject.exec('echo changed > workspace/note.txt')
    await look()
    const [one] = await waiting()
    assert.equal(one?.kind, 'agent.sync')
    await look()
    assert.equal((await waiting()).length, 1)
    await world.host.close()
    const { state, error, error_code } = await world.run(one?.id ?? '')
    await world.host.open()
    assert.deepEqual([state, error, error_code], ['failed', 'The agent is not ready yet', 'agent_not_ready'])
    await world.database.pool.query(
      `UPDATE operation SET finished_at = now() + interval '1 minute' WHERE id = $1`,
      [one?.id],
    )
    await look()
    assert.deepEqual(await waiting(), [])
    await world.database.pool.query(
      `UPDATE operation SET finished_at = now() - interval '1 minute' WHERE id = $1`,
      [one?.id],
    )
    await look()
    assert.equal((await waiting()).length, 1)
  })
  it("an agent's workspace is freed when its agent is deleted", async () => {
    const cids = new Set((await subject.history()).map(({ cid }) => cid))
    const agent = await findAgent(world.database.pool, subject.made.agentId)
    assert.ok(agent)
    await deleteAgent(world.services.prisma, agent)
    assert.deepEqual(await subject.history(), [])
    const { rows } = await world.database.pool.query<{ id: string; cid: string }>(
      `SELECT id, input->>'cid' AS cid FROM operation WHERE kind = 'content.release' AND state = 'queued'`,
    )
    for (const cid of cids) assert.ok(rows.some((row) => row.cid === cid))
    for (const { id } of rows) await world.run(id)
    for (const cid of cids) assert.equal(await isPinned(cid), false)
  })
})
