/** `berth agents …` on a running agent, as a user runs it elsewhere. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { berthOf, runBundle } from '../../support/command-line.ts'
import { useFolder } from '../../support/folder.ts'
import { openContext } from '../context.ts'
import { remove, sharedAgent, useStandIn } from './context.ts'

const context = await openContext()
const { agentId, record } = await sharedAgent(context)
const dir = await useFolder('berth-command-line-')
const env = { BERTH_URL: context.url, BERTH_KEY: String(context.shared.key), XDG_CONFIG_HOME: dir }
const berth = (...args: string[]) => berthOf({ env, cwd: dir }, ...args)

describe('berth agents', () => {
  it('an agent is named by its name or id, and its token is not printed', async () => {
    const listed = await berth('agents', 'ls', '--json')
    assert.match(listed, new RegExp(agentId))
    assert.match(await berth('agents', 'show', record.name), new RegExp(`^id +${agentId}$`, 'm'))
    assert.ok(!listed.includes(record.gatewayToken))
    assert.match(
      await berth('__complete', '--', 'agents', 'chat', record.name.slice(0, 2)),
      new RegExp(`^${record.name}\t`, 'm'),
    )
  })
  it('berth agents exec passes on output, words and the exit code', async () => {
    const said = await runBundle(['agents', 'exec', agentId, 'echo out; echo err >&2; exit 3'], { env })
    assert.deepEqual(said, { code: 3, stdout: 'out\n', stderr: 'err\n' })
    assert.equal(
      await berth('agents', 'exec', agentId, 'printf', '%s|', "it's", '$HOME', '-n'),
      "it's|$HOME|-n|",
    )
  })
  it('berth agents chat prints the reply, and --json its parts', async () => {
    const here = ['agents', 'chat', agentId, '--conversation', randomUUID()]
    assert.equal(await berth(...here, 'Hello'), 'pong: Hello')
    const run = { env, stdin: 'run: echo from a tool' }
    const said = JSON.parse(await berthOf(run, ...here, '--json'))
    assert.match(said.reply, /^ran: from a tool/)
    assert.deepEqual([said.state, said.toolCalls], ['done', ['exec']])
    const { body } = await context.shared.get(`/v0/agents/${agentId}/conversations/${said.conversationId}`)
    assert.equal(body.messages[0].text, 'Hello', 'the conversation continues')
  })
  it('files of an agent are written, listed, read and deleted', async () => {
    await writeFile(join(dir, 'in.txt'), 'for the agent')
    await berth('agents', 'files', 'put', agentId, 'in.txt', 'workspace/cli.txt')
    assert.match(await berth('agents', 'files', 'ls', agentId, 'workspace'), /^cli\.txt +13 B/m)
    assert.equal(await berth('agents', 'files', 'get', agentId, 'workspace/cli.txt', '-'), 'for the agent')
    assert.match(await berth('agents', 'files', 'rm', agentId, 'workspace/cli.txt'), /^deleted /)
  })
  it('tasks of an agent are added, listed and deleted', async () => {
    const [id = ''] = (
      await berth('agents', 'tasks', 'add', agentId, 'Morning', 'Sum up', '--cron', '0 9 * * *')
    ).split(' ')
    assert.match(
      await berth('agents', 'tasks', 'ls', agentId),
      new RegExp(`^${id} +Morning +0 9 \\* \\* \\*`, 'm'),
    )
    assert.equal(await berth('agents', 'tasks', 'rm', agentId, id), `deleted ${id}`)
  })
  it('an agent is created with protocols, and forked until the plan’s limit', async () => {
    const plan = `three ${randomUUID()}`
    await context.sql(
      `INSERT INTO plan (name, agent_limit, channels, custom_domains, pin_by_cid) VALUES ($1, 3, true, true, true)`,
      [plan],
    )
    const own = await context.workspace(plan)
    await useStandIn(context, own)
    const berth = (...args: string[]) => runBundle(args, { env: { ...env, BERTH_KEY: String(own.api.key) } })
    const created = await berth('agents', 'create', 'Ada', '--protocol', 'mcp', '--protocol', 'a2a')
    assert.match(created.stdout, /^x\w{7} running$/m, created.stderr)
    assert.match((await berth('agents', 'show', 'Ada')).stdout, /^protocols +mcp, a2a$/m)
    const forked = await berth('agents', 'fork', 'Ada', '--json')
    assert.equal(forked.code, 0, forked.stderr)
    const [fork] = JSON.parse(forked.stdout)
    assert.deepEqual([fork.name, fork.status, fork.gatewayToken], ['Ada fork', 'running', undefined])
    const beyond = await berth('agents', 'fork', 'Ada', '--name', 'Ben', '--count', '2')
    assert.equal(beyond.code, 4)
    assert.match(beyond.stderr, /^error: 1 of 2 forks: /)
    const agents = JSON.parse((await berth('agents', 'ls', '--json')).stdout)
    assert.deepEqual(agents.map(({ name }: { name: string }) => name).sort(), ['Ada', 'Ada fork', 'Ben 1'])
    await Promise.all(agents.map(({ agentId }: { agentId: string }) => remove(own.api, agentId)))
  })
  it('the log of an agent is printed and followed until Ctrl-C', async () => {
    const lines = (await berth('agents', 'logs', agentId, '-n', '2')).split('\n')
    assert.equal(lines.length, 2)
    const { code, stdout, stderr } = await runBundle(['agents', 'logs', agentId, '-f', '--json'], {
      env,
      until: '\n',
    })
    assert.equal(code, 130)
    assert.equal(stderr, '')
    assert.equal(typeof JSON.parse(stdout.split('\n')[0] ?? '').message, 'string')
  })
})
