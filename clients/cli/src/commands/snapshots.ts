/** The history of an agent's workspace. */
import { allItems, startNow, unwrap, waitForOperation } from '../../../typescript/src/index.ts'
import { count, LIMIT } from '../arguments.ts'
import { command } from '../command.ts'
import { agentIdOf, collect } from '../find.ts'
import { ago, table } from '../format.ts'
import { Progress } from '../progress.ts'
import { harmlessLines, paint } from '../terminal.ts'

export const snapshotCommands = [
  command({
    name: 'agents snapshots ls',
    summary: 'list the snapshots of an agent, newest first',
    usage: '<agent>',
    options: { limit: LIMIT },
    async run({ berth, args, options }) {
      const path = { agentId: await agentIdOf(berth, args[0]) }
      const snapshots = await collect(
        allItems((page) => berth.GET('/v0/agents/{agentId}/snapshots', { params: { path, query: page } })),
        count(options.limit, 100),
      )
      const rows = snapshots.map(({ snapshotCid, changeSummary, createdAt }) => ({
        cid: snapshotCid,
        taken: ago(createdAt),
        changes: changeSummary,
      }))
      return { data: snapshots, text: table(rows) }
    },
  }),
  command({
    name: 'agents snapshots take',
    summary: 'save an agent’s workspace now',
    usage: '<agent>',
    async run({ berth, args, signal }) {
      const path = { agentId: await agentIdOf(berth, args[0]) }
      const started = await berth.POST('/v0/agents/{agentId}/snapshots/sync', {
        params: { path, header: startNow() },
      })
      using progress = new Progress(`saving ${path.agentId}`)
      if (started.response.status === 202)
        await waitForOperation(berth, started, { onProgress: progress.operation, signal })
      await unwrap(started)
      const { agent } = await unwrap(berth.GET('/v0/agents/{agentId}', { params: { path } }))
      return {
        data: { snapshotCid: agent.snapshotCid, lastSync: agent.lastSync },
        text: agent.snapshotCid ?? '',
      }
    },
  }),
  command({
    name: 'agents snapshots diff',
    summary: 'compare two snapshots of an agent',
    usage: '<agent> <from> <to>',
    async run({ berth, args: [named, from = '', to = ''] }) {
      const params = { path: { agentId: await agentIdOf(berth, named) }, query: { from, to } }
      const data = await unwrap(berth.GET('/v0/agents/{agentId}/snapshots/diff', { params }))
      return { data, text: harmlessLines(data.diff).trimEnd().split('\n').map(diffLine).join('\n') }
    },
  }),
  command({
    name: 'agents snapshots reset',
    summary: 'go back to a snapshot; the workspace is saved first',
    usage: '<agent> <cid>',
    async run({ berth, args: [named, snapshotCid = ''], signal }) {
      const agentId = await agentIdOf(berth, named)
      const started = await berth.POST('/v0/agents/{agentId}/snapshots/reset', {
        params: { path: { agentId }, header: startNow() },
        body: { snapshotCid },
      })
      const data = await unwrap(started)
      using progress = new Progress(`resetting ${agentId}`)
      if (started.response.status === 202)
        await waitForOperation(berth, started, { onProgress: progress.operation, signal })
      return { data, text: `${agentId} is back at ${snapshotCid}` }
    },
  }),
]

function diffLine(line: string): string {
  if (/^(\+\+\+|---|diff )/.test(line)) return paint('bold', line)
  if (line.startsWith('@@')) return paint('cyan', line)
  if (line.startsWith('+')) return paint('green', line)
  return line.startsWith('-') ? paint('red', line) : line
}
