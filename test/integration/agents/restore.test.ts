/** An agent whose volume was lost gets its workspace back from IPFS, or reports why not. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { until } from '../../support/processes.ts'
import { Subject } from './snapshot-world.ts'
import { STAND_IN } from './stand-in.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

const MISSING = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'

describe('a lost volume', { timeout: 600_000, skip: !kuboBinary && 'needs BERTH_TEST_KUBO' }, () => {
  let kubo: KuboNode
  let world: AgentsWorld
  let subject: Subject
  before(async () => {
    kubo = await startKubo()
    world = await startAgentsWorld({ IPFS_PRIVATE_API_URL: kubo.apiUrl })
    subject = await Subject.create(world)
    await subject.exec(
      // The first commit is made after the start. It must not have what follows, or `other` would name the snapshot's.
      'until git rev-parse --quiet --verify main >/dev/null; do sleep 0.05; done; git branch other; ' +
        `echo '{"version":1,"scripts":{"build":"echo built > built.log"}}' > manifest.json; cd workspace; ` +
        'echo mine > note.txt; ln -s note.txt link; printf "#!/bin/sh\\necho runs\\n" > run.sh; chmod +x run.sh; rm TOOLS.md; ' +
        'mkdir -p empty/deep; chmod 600 note.txt',
    )
    await subject.succeed('agent.sync')
  })
  after(async () => {
    await world?.stop()
    await kubo?.stop()
  })

  const restart = () => subject.run('agent.restart')
  const again = async (id: unknown) => {
    await world.database.pool.query('UPDATE operation SET next_attempt_at = now() WHERE id = $1', [id])
    return world.run(String(id))
  }

  it('a lost volume is restored, and lost branches are listed [report: secrets in snapshots]', async () => {
    const [newest] = await subject.history()
    await subject.loseVolume()
    const { state, error_cause: cause, result } = await restart()
    assert.equal(state, 'succeeded', String(cause))
    assert.equal(await subject.exec('git rev-parse HEAD'), newest?.commit_sha)
    assert.equal(await subject.exec('stat -c %a workspace/note.txt workspace/empty/deep'), '600\n755')
    const [problem, ...more] = (result?.problems ?? []) as string[]
    assert.match(
      problem ?? '',
      /^not restored: the branch other at [0-9a-f]{10}: a snapshot only has the files of/,
    )
    assert.deepEqual(more, [])
    assert.equal(await subject.exec('cat workspace/link && workspace/run.sh'), 'mine\nruns')
    assert.equal(await subject.exec('ls workspace/TOOLS.md 2>/dev/null || echo gone'), 'gone')
    assert.equal(await subject.exec('git status --porcelain && git fsck --no-progress 2>&1'), '')
    await until('it is built', () => subject.exec('cat built.log').catch(() => undefined))
    const { isNew } = await subject.succeed('agent.sync')
    assert.equal(isNew, false)
  })
  it('a lost volume is built even if the gateway is not ready in time at first', async () => {
    const usual = world.services.config
    const setVersion = (version: string) =>
      world.database.pool.query('UPDATE agent SET engine_version = $2 WHERE id = $1', [
        subject.made.id,
        version,
      ])
    await subject.loseVolume()
    await setVersion(STAND_IN.slow)
    world.services.config = { ...usual, BERTH_AGENT_READY_SECONDS: 1 }
    assert.equal((await restart()).state, 'failed')
    world.services.config = usual
    assert.equal(await subject.exec('ls built.log 2>/dev/null || echo none'), 'none')
    await setVersion(STAND_IN.good)
    assert.equal((await restart()).state, 'succeeded')
    await until('it is built', () => subject.exec('cat built.log').catch(() => undefined))
  })
  it('a lost volume waits for an unreachable IPFS node', async () => {
    await subject.loseVolume()
    await kubo.kill()
    const tried = await restart()
    assert.deepEqual([tried.state, tried.error_code], ['queued', 'outage'])
    assert.equal((await subject.row()).status, 'starting')
    await kubo.restart()
    const { state, error_cause: cause } = await again(tried.id)
    assert.equal(state, 'succeeded', String(cause))
    assert.equal(await subject.exec('cat workspace/note.txt'), 'mine')
  })
  it('a lost volume is restored again if a restore was interrupted', async () => {
    const [newest] = await subject.history()
    // A reset that was killed halfway leaves this state: some files, another commit, and the mark in the row.
    await subject.exec(
      'rm -rf workspace/* && git -c user.name=x -c user.email=x@y commit --quiet --all --message "before a reset"',
    )
    await world.database.pool.query('UPDATE agent SET synced_at = NULL WHERE agent_id = $1', [
      subject.made.agentId,
    ])
    // Half a workspace must not become the newest snapshot.
    const { state, error_code: code } = await subject.run('agent.sync')
    assert.deepEqual([state, code], ['failed', 'agent_not_ready'])
    assert.equal((await restart()).state, 'succeeded')
    assert.equal(await subject.exec('cat workspace/note.txt'), 'mine')
    assert.equal(await subject.exec('git rev-parse HEAD'), newest?.commit_sha)
    assert.ok((await subject.row()).synced_at)
  })
  it('a volume that still has its repository is not restored as a lost volume', async () => {
    await subject.exec('echo newer > workspace/note.txt')
    assert.equal((await restart()).state, 'succeeded')
    assert.equal(await subject.exec('cat workspace/note.txt'), 'newer')
  })
  it('a workspace cannot be saved while the IPFS node is unreachable, and can afterwards', async () => {
    const before = await subject.history()
    await kubo.kill()
    const { state, error, error_code } = await subject.run('agent.sync')
    assert.deepEqual([state, error, error_code], ['failed', 'IPFS node unreachable', 'ipfs_unreachable'])
    const reset = await subject.run('agent.reset', { snapshotCid: before[0]?.cid })
    assert.deepEqual([reset.state, reset.error], ['failed', 'IPFS node unreachable'])
    assert.equal(await subject.exec('cat workspace/note.txt'), 'newer')
    await kubo.restart()
    assert.equal((await subject.succeed('agent.sync')).isNew, true)
    assert.equal((await subject.history()).length, before.length + 1)
  })
  it('a lost volume with a lost snapshot is not seeded, and can be reset to an older snapshot', async () => {
    const [newest, older] = await subject.history()
    await world.database.pool.query('UPDATE snapshot SET cid = $2 WHERE id = $1', [newest?.id, MISSING])
    await subject.loseVolume()
    const { state, error, error_code } = await restart()
    assert.deepEqual([state, error, error_code], ['failed', 'Restart failed', 'content_lost'])
    const { status, status_reason: reason } = await subject.row()
    assert.equal(status, 'not_running')
    assert.match(String(reason), /newest snapshot bafy\w+ cannot be restored/)
    assert.equal(await subject.exec('ls workspace 2>/dev/null || echo nothing'), 'nothing')

    const { commitSha } = await subject.succeed('agent.reset', { snapshotCid: older?.cid })
    assert.equal(commitSha, older?.commit_sha)
    assert.equal(await subject.exec('cat workspace/note.txt'), 'mine')
    const { rows } = await world.database.pool.query<{ id: string; kind: string }>(
      `SELECT id, kind FROM operation WHERE agent_id = $1 AND state = 'queued'`,
      [subject.made.agentId],
    )
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['agent.restart'],
    )
    assert.equal((await world.run(rows[0]?.id ?? '')).state, 'succeeded')
    assert.equal(await subject.exec('git rev-parse HEAD'), older?.commit_sha)
  })
})
