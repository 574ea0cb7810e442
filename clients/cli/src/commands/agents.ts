import { startNow, unwrap, waitForOperation } from '../../../typescript/src/index.ts'
import { count, LIMIT, NO_WAIT } from '../arguments.ts'
import { openInBrowser } from '../browser.ts'
import { command } from '../command.ts'
import { agentIdOf, listAgents } from '../find.ts'
import { ago, bytes, details, table } from '../format.ts'
import { Progress } from '../progress.ts'
import { isTerminal, paint } from '../terminal.ts'

export const agentCommands = [
  command({
    name: 'agents ls',
    summary: 'list agents',
    options: { limit: LIMIT },
    async run({ berth, options }) {
      const agents = await listAgents(berth, count(options.limit, 100))
      const rows = agents.map(({ agentId, name, status, statusReason, agentVersion, lastSync }) => ({
        id: agentId,
        name,
        status: statusText(status),
        version: agentVersion,
        saved: ago(lastSync),
        reason: statusReason,
      }))
      return {
        data: agents.map(withoutToken),
        text: table(rows, 'none; berth agents create <name> creates one'),
      }
    },
  }),
  command({
    name: 'agents show',
    summary: 'show an agent',
    usage: '<agent>',
    async run({ berth, args }) {
      const agentId = await agentIdOf(berth, args[0])
      const data = await unwrap(berth.GET('/v0/agents/{agentId}', { params: { path: { agentId } } }))
      const { agent, disk, secrets, skills } = data
      const fields = {
        id: agent.agentId,
        name: agent.name,
        description: agent.description ?? undefined,
        status: statusText(agent.status),
        reason: agent.statusReason ?? undefined,
        version: `${agent.engine} ${agent.agentVersion}`,
        created: ago(agent.createdAt),
        saved: ago(agent.lastSync),
        disk: disk ? `${bytes(disk.usedBytes)} of ${bytes(disk.limitBytes)}` : undefined,
        secrets: secrets.map(({ name }) => name),
        skills: skills.map(({ name }) => name),
      }
      return { data: { ...data, agent: withoutToken(agent) }, text: details(fields) }
    },
  }),
  command({
    name: 'agents create',
    summary: 'create an agent, and wait until it runs',
    usage: '<name>',
    options: {
      description: { about: 'what it is for', value: 'text' },
      template: { about: 'start from this template', value: 'id' },
      'no-wait': NO_WAIT,
    },
    async run({ berth, args: [name = ''], options, signal }) {
      const { description, template } = options
      const body = { name, ...(description && { description }), ...(template && { templateId: template }) }
      const started = await berth.POST('/v0/agents', { params: { header: startNow() }, body })
      const { agent } = await unwrap(started)
      if (!options['no-wait']) {
        using progress = new Progress(`starting ${agent.agentId}`)
        await waitForOperation(berth, started, { onProgress: progress.operation, signal })
      }
      const path = { agentId: agent.agentId }
      const now = (await unwrap(berth.GET('/v0/agents/{agentId}', { params: { path } }))).agent
      return { data: withoutToken(now), text: `${now.agentId} ${statusText(now.status)}${reason(now)}` }
    },
  }),
  command({
    name: 'agents restart',
    summary: 'restart an agent, and wait until it runs',
    usage: '<agent>',
    options: { version: { about: 'on this version of its engine', value: 'version' }, 'no-wait': NO_WAIT },
    async run({ berth, args, options, signal }) {
      const agentId = await agentIdOf(berth, args[0])
      const body = options.version ? { version: options.version } : {}
      const params = { path: { agentId }, header: startNow() }
      const started = await berth.POST('/v0/agents/{agentId}/restart', { params, body })
      const data = await unwrap(started)
      if (options['no-wait']) return { data, text: `${agentId} restarts` }
      using progress = new Progress(`restarting ${agentId}`)
      const operation = await waitForOperation(berth, started, { onProgress: progress.operation, signal })
      return { data: operation, text: `${agentId} restarted` }
    },
  }),
  command({
    name: 'agents rm',
    summary: 'delete an agent with its container and files; its snapshots stay',
    usage: '<agent>',
    async run({ berth, args }) {
      const agentId = await agentIdOf(berth, args[0])
      const params = { path: { agentId }, header: startNow() }
      const data = await unwrap(berth.DELETE('/v0/agents/{agentId}', { params }))
      return { data, text: `deleted ${agentId}` }
    },
  }),
  command({
    name: 'agents open',
    summary: 'open an agent in the dashboard',
    usage: '<agent>',
    options: { print: { about: 'only print the URL' } },
    async run({ berth, target, args, options, json }) {
      const url = `${target.url}/dashboard/agents/${await agentIdOf(berth, args[0])}`
      if (!options.print && !json && isTerminal()) await openInBrowser(url)
      return { data: { url }, text: url }
    },
  }),
]

/** An agent's record without its gateway token, which is a secret: `agents token` is its own request. */
const withoutToken = <T extends { gatewayToken: string | null }>({ gatewayToken: _, ...agent }: T) => agent

const reason = ({ statusReason }: { statusReason: string | null }): string =>
  statusReason ? `: ${statusReason}` : ''

const STYLES = { running: 'green', starting: 'yellow', not_running: 'red' } as const

const statusText = (status: keyof typeof STYLES): string => paint(STYLES[status] ?? 'reset', status)
