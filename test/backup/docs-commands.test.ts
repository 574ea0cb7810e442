/** The commands of docs/operations.md for backups in S3 and for one agent, run like an operator runs them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCommands, type Tag } from '../../scripts/ci/docs-commands.ts'
import { installStandIns, STAND_IN } from '../integration/agents/stand-in.ts'
import { until } from '../support/processes.ts'
import { startS3, withoutS3 } from '../support/s3.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { clientOf, makeDir } from './world.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

describe('docs/operations.md', { skip: withoutS3, timeout: 600_000 }, () => {
  const stops: (() => Promise<unknown>)[] = []
  after(async () => {
    for (const stop of stops.reverse()) await stop()
  })

  it('docs/operations.md has commands that back up to S3 and restore an agent from there', async () => {
    const { path: root, remove } = await makeDir()
    stops.push(remove)
    const server = await startS3()
    stops.push(() => server.stop())
    await server.createBucket('backups')
    await installStandIns(join(root, 'engines'))
    const settings = {
      ...server.env,
      BERTH_S3_PATH_STYLE: 'true',
      BERTH_RUNTIME: 'process',
      BERTH_ENGINES_DIR: join(root, 'engines'),
      BERTH_ENGINE_VERSIONS: STAND_IN.good,
      BERTH_DATA_DIR: join(root, 'data'),
    }
    let stack: Stack | undefined = await startStack({ env: settings })
    stops.push(async () => stack?.stop())
    const key = await stack.createKey()
    const api = await clientOf(stack.url, key)
    const made = await api.post('/v0/agents', { name: 'Documented' }, { prefer: 'wait=60' })
    const { agentId } = made.body.agent
    const { env } = stack
    const run = async (tag: Tag) => {
      const { code, output } = await runCommands(join(ROOT, 'docs/operations.md'), tag, {
        cwd: ROOT,
        env: { ...env, BUCKET: 'backups', BACKUPS: 's3://backups/berth', AGENT_ID: agentId },
        quiet: true,
      })
      assert.equal(code, 0, output)
      return output
    }
    assert.match(await run('backup'), /✔ 1 backup, .*: all is there/)
    await api.delete(`/v0/agents/${agentId}`)
    await stack.stop()
    stack = undefined
    assert.match(await run('stopped'), new RegExp(`✔ restored the agent ${agentId} of .*, 1 home of agents`))
    stack = await startStack({ env: settings })
    const again = await clientOf(stack.url, key)
    await until('the agent runs', async () => {
      const { status } = await again.post(`/v0/agents/${agentId}/console/exec`, { command: 'true' })
      return status === 200
    })
  })
})
