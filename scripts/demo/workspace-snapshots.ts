/** Snapshots: saving, resetting, and restoring from nothing. */
import { openRuntimeOf } from '../../test/support/runtime.ts'
import { exec, until, type Workspace } from './workspace.ts'

interface Synced {
  snapshotCid: string
  commitSha: string
  changeSummary: string | null
}

const NOTE = 'workspace/notes.md'

/** The agent writes a note, and its workspace is saved. */
export async function save(scene: Workspace): Promise<Synced & { note: string }> {
  const { screen, agent } = scene
  await screen.step('Change', async () => {
    await exec(scene, `echo 'Low water at nine.' > ${NOTE}`)
    return [undefined, `the agent writes ${NOTE}`]
  })
  const synced = await screen.step('Sync', async () => {
    const synced = await agent.call<Synced>('POST', '/snapshots/sync')
    return [synced, synced.changeSummary ?? 'nothing had changed']
  })
  screen.detail(`commit ${synced.commitSha.slice(0, 10)} → ${synced.snapshotCid}`)
  return { ...synced, note: await exec(scene, `cat ${NOTE}`) }
}

/** Resets the agent to a snapshot; its current state is saved first. */
export async function reset(scene: Workspace, to: Synced & { note: string }): Promise<void> {
  const { screen, agent } = scene
  await screen.step('Reset', async () => {
    await exec(scene, `echo 'Lost?' > ${NOTE}`)
    const { commitSha } = await agent.call<Synced>('POST', '/snapshots/reset', {
      snapshotCid: to.snapshotCid,
    })
    if ((await exec(scene, 'git rev-parse HEAD')) !== commitSha) throw new Error('HEAD is elsewhere')
    if ((await exec(scene, `cat ${NOTE}`)) !== to.note) throw new Error(`${NOTE} is another`)
    const { snapshots } = await agent.call<{ snapshots: Synced[] }>('GET', '/snapshots')
    return [undefined, `back to ${to.commitSha.slice(0, 10)}; history keeps ${snapshots.length} snapshots`]
  })
}

/**
 * Removes the agent's container and its volume without Berth's knowledge, as if the machine had burnt down.
 * @param env settings of the running Berth.
 */
export async function lose(scene: Workspace, env: NodeJS.ProcessEnv): Promise<void> {
  const { screen, agent, signal } = scene
  await screen.step('Loss', async () => {
    await agent.call('POST', '/snapshots/sync')
    const before = await exec(scene, 'git rev-parse HEAD^{tree} HEAD')
    const runtime = await openRuntimeOf(env)
    try {
      await runtime.remove(agent.id, { volume: true, signal })
    } finally {
      await runtime.close()
    }
    // It accepts requests before it is fully restored.
    await until(signal, async () => {
      const now = await exec(scene, 'git rev-parse HEAD^{tree} HEAD').catch(() => undefined)
      return now === before || undefined
    })
    await agent.running()
    return [undefined, 'container and disk removed; restored from IPFS: same tree, same commit']
  })
}
