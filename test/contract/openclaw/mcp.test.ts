/** Tools of `/mcp` that need a running agent: messages, commands, files, tasks, logs, snapshots. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { connectMcp, textOf } from '../../support/mcp.ts'
import { openContext } from '../context.ts'
import { sharedAgent } from './context.ts'

const context = await openContext()
const { agentId } = await sharedAgent(context)
const mcp = await connectMcp(context.url, context.shared.key)

/** The structured result of a call. */
async function call(name: string, args: Record<string, unknown> = {}): Promise<any> {
  const result = await mcp.callTool({ name, arguments: { agentId, ...args } }, { timeout: 300_000 })
  assert.ok(!result.isError, `${name}: ${textOf(result)}`)
  return result.structuredContent
}

describe('tools on a running agent', () => {
  it('a message gets a reply, and its conversation can be continued and read', async () => {
    const first = await call('agents_message', { text: 'Hello from a model' })
    assert.equal(first.state, 'done')
    assert.ok(first.reply.length > 0)
    const { conversationId } = first
    await call('agents_message', { conversationId, text: 'And again' })
    const { messages } = await call('agents_read_conversation', { conversationId })
    const said = messages.filter(({ role }: { role: string }) => role === 'user')
    assert.deepEqual(
      said.map(({ text }: { text: string }) => text),
      ['Hello from a model', 'And again'],
    )
  })
  it('a command returns its output and exit code', async () => {
    const { stdout, exitCode } = await call('agents_run_command', { command: 'echo hello; exit 3' })
    assert.deepEqual([stdout, exitCode], ['hello\n', 3])
  })
  it('a file is written, listed and read, as a resource too', async () => {
    const path = 'workspace/from-mcp.md'
    const { version } = await call('agents_write_file', { path, text: '# Hello ☀\n', ifVersion: '' })
    const again = { agentId, path, text: 'x', ifVersion: '' }
    const refused = await mcp.callTool({ name: 'agents_write_file', arguments: again })
    assert.match(textOf(refused), /exists|changed/i)
    const { entries } = await call('agents_list_files', { path: 'workspace' })
    assert.ok(entries.some(({ name }: { name: string }) => name === 'from-mcp.md'))
    assert.deepEqual(await call('agents_read_file', { path }), { text: '# Hello ☀\n', size: 12, version })
    const uri = `berth://agents/${agentId}/files/${path}`
    const { contents } = await mcp.readResource({ uri })
    assert.deepEqual(contents, [{ uri, mimeType: 'text/markdown', text: '# Hello ☀\n' }])
    await call('agents_write_file', { path: 'workspace/bytes', base64: '/wD+' })
    assert.equal((await call('agents_read_file', { path: 'workspace/bytes' })).base64, '/wD+')
    await assert.rejects(mcp.readResource({ uri: `${uri}.gone` }), /Resource not found/)
  })
  it('the log is read, as a resource too', async () => {
    assert.ok((await call('agents_logs')).logs.length > 0)
    const { contents } = await mcp.readResource({ uri: `berth://agents/${agentId}/log` })
    assert.match(JSON.stringify(contents), /gateway/)
  })
  it('a task is created, changed, listed, started and deleted', async () => {
    const schedule = { kind: 'cron', expr: '0 9 1 1 *' }
    const payload = { kind: 'agentTurn', message: 'Report' }
    const { id: jobId } = await call('agents_create_task', { name: 'From MCP', schedule, payload })
    await call('agents_update_task', { jobId, name: 'Renamed' })
    const { jobs } = await call('agents_list_tasks')
    assert.ok(jobs.some(({ name }: { name: string }) => name === 'Renamed'))
    assert.equal((await call('agents_run_task', { jobId })).ok, true)
    await call('agents_delete_task', { jobId })
  })
  it('a snapshot is taken and listed, with its operation', async () => {
    const { snapshotCid, operation } = await call('agents_snapshot')
    assert.equal(operation.state, 'succeeded')
    const { snapshots } = await call('agents_list_snapshots', { limit: 1 })
    assert.equal(snapshots[0].snapshotCid, snapshotCid)
  })
})
