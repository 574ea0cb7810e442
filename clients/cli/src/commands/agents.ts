import { type Berth, startNow, unwrap, waitForOperation } from '../../../typescript/src/index.ts'
import { count, LIMIT, NO_WAIT } from '../arguments.ts'
import { openInBrowser } from '../browser.ts'
import { command } from '../command.ts'
import { AdvisedError, EXIT } from '../errors.ts'
import { agentIdOf, listAgents } from '../find.ts'
import { ago, bytes, details, table } from '../format.ts'
import { Progress } from '../progress.ts'
import { isTerminal, paint } from '../terminal.ts'

const PROTOCOLS = ['a2a', 'mcp'] as const
type Protocol = (typeof PROTOCOLS)[number]

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
        protocols: agent.protocols.length > 0 ? agent.protocols : undefined,
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
      protocol: {
        about: 'let other agents talk to it in this protocol; may be repeated',
        value: 'protocol',
        many: true,
        choices: PROTOCOLS,
      },
      'no-wait': NO_WAIT,
    },
    async run({ berth, args: [name = ''], options, signal }) {
      const { description, template } = options
      const protocols = options.protocol as Protocol[]
      const body = {
        name,
        ...(description && { description }),
        ...(template && { templateId: template }),
        ...(protocols.length > 0 && { protocols }),
      }
      const started = await berth.POST('/v0/agents', { params: { header: startNow() }, body })
      const { agent } = await unwrap(started)
      if (!options['no-wait']) {
        using progress = new Progress(`starting ${agent.agentId}`)
        await waitForOperation(berth, started, { onProgress: progress.operation, signal })
      }
      const now = await readAgent(berth, agent.agentId)
      return { data: withoutToken(now), text: stateOf(now) }
    },
  }),
  command({
    name: 'agents fork',
    summary: 'copy an agent with its workspace and settings, and wait until the copies run',
    usage: '<agent>',
    options: {
      name: { about: 'name of the fork; by default the agent’s name and “fork”', value: 'name' },
      count: { about: 'how many forks, at most 10; default 1', value: 'count' },
      snapshot: { about: 'begin with this snapshot instead of the workspace now', value: 'cid' },
      'no-wait': NO_WAIT,
    },
    async run({ berth, args, options, signal }) {
      const path = { agentId: await agentIdOf(berth, args[0]) }
      const { name, snapshot: snapshotCid } = options
      const body = {
        count: count(options.count, 1),
        ...(name && { name }),
        ...(snapshotCid && { snapshotCid }),
      }
      const params = { path, header: startNow() }
      const { forks } = await unwrap(berth.POST('/v0/agents/{agentId}/fork', { params, body }))
      const made = forks.filter((fork) => 'agent' in fork)
      for (const { agent, operation } of options['no-wait'] ? [] : made) {
        using progress = new Progress(`starting ${agent.agentId}`)
        await waitForOperation(berth, operation.id, { onProgress: progress.operation, signal })
      }
      // Beyond the plan's limit, the first forks exist.
      const refused = forks.find((fork) => !('agent' in fork))
      if (refused)
        throw new AdvisedError(
          `${made.length} of ${forks.length} forks: ${refused.error}`,
          'berth agents ls lists them',
          EXIT.forbidden,
        )
      const agents = await Promise.all(made.map(({ agent }) => readAgent(berth, agent.agentId)))
      return { data: agents.map(withoutToken), text: agents.map(stateOf).join('\n') }
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

type Agent = Awaited<ReturnType<typeof readAgent>>

const readAgent = async (berth: Berth, agentId: string) =>
  (await unwrap(berth.GET('/v0/agents/{agentId}', { params: { path: { agentId } } }))).agent

const stateOf = (agent: Agent): string => `${agent.agentId} ${statusText(agent.status)}${reason(agent)}`

const reason = ({ statusReason }: { statusReason: string | null }): string =>
  statusReason ? `: ${statusReason}` : ''

const STYLES = { running: 'green', starting: 'yellow', not_running: 'red' } as const

const statusText = (status: keyof typeof STYLES): string => paint(STYLES[status] ?? 'reset', status)
