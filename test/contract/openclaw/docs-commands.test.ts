/** The commands that README.md shows for a running Berth, run as by a reader. */
import assert from 'node:assert/strict'
import { readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { after, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCommands } from '../../../scripts/ci/docs-commands.ts'
import { useFolder } from '../../support/folder.ts'
import { openContext } from '../context.ts'
import { remove, sharedAgent, useStandIn } from './context.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const context = await openContext()

it('all commands of README.md work', async () => {
  const { agentId, record, api } = await sharedAgent(context)
  // README.md also creates an agent, but only waits for its start.
  await useStandIn(context, await context.sharedWorkspace(), { name: 'First' })
  const pinned = await api.post('/v3/files/public/pin_by_cid', {
    cid: 'bafkqaekimvwgy3zamzzg63jaijsxe5dibi',
  })
  const before = new Set(await agents())
  after(async () => {
    for (const made of await agents()) if (!before.has(made)) await remove(api, made)
  })
  const { code, output } = await runCommands(join(ROOT, 'README.md'), 'start', {
    cwd: await folder(),
    env: {
      ...context.env,
      // Values that a reader copies from the responses.
      AGENT_ID: agentId,
      GATEWAY_TOKEN: record.gatewayToken,
      CID: 'bafkqaekimvwgy3zamzzg63jaijsxe5dibi',
      OPERATION_ID: String(pinned.headers.get('operation-id')),
    },
    quiet: true,
  })
  assert.equal(code, 0, output)
  assert.match(output, /pong: Hello/, 'the agent has replied')
})

const agents = async (): Promise<string[]> =>
  (await context.shared.get('/v0/agents')).body.agents.map((agent: { agentId: string }) => agent.agentId)

/** A folder that looks like the checkout, but files created in it leave no trace there. */
async function folder(): Promise<string> {
  const dir = await useFolder('berth-readme-')
  for (const name of await readdir(ROOT))
    if (name !== '.git') await symlink(join(ROOT, name), join(dir, name))
  return dir
}
