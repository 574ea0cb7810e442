/** Secrets of agents, which become environment variables. */
import { type Berth, unwrap } from '../../../typescript/src/index.ts'
import { command } from '../command.ts'
import { AdvisedError, EXIT, UsageError } from '../errors.ts'
import { agentIdOf } from '../find.ts'
import { ago, table } from '../format.ts'
import { readSecret } from '../prompt.ts'

export const agentSecretCommands = [
  command({
    name: 'agents secrets ls',
    summary: 'list the secrets of an agent, without their values',
    usage: '<agent>',
    async run({ berth, args }) {
      const path = { agentId: await agentIdOf(berth, args[0]) }
      const { secrets } = await unwrap(berth.GET('/v0/agents/{agentId}/secrets', { params: { path } }))
      const rows = secrets.map(({ name, updatedAt, synced, readable, hosts }) => ({
        name,
        changed: ago(updatedAt),
        'agent reads it': readable ? 'yes' : 'no',
        hosts: hosts?.join(' ') ?? '',
        applied: synced ? 'yes' : 'at the next restart',
      }))
      return { data: secrets, text: table(rows) }
    },
  }),
  command({
    name: 'agents secrets set',
    summary: 'give an agent a secret; the value is asked for, or read from stdin',
    usage: '<agent> <name>',
    options: {
      host: {
        about: 'only this host gets the value, and the agent a placeholder',
        value: 'host',
        many: true,
      },
      via: { about: 'how programs send it: bearer, basic, header:NAME or query:NAME', value: 'way' },
    },
    more: `A secret of the workspace with this name gets the new value, for all agents that have it, and keeps
its hosts unless others are given. It applies at the agent's next restart; a model provider's first
key restarts it by itself.

  berth agents secrets set Researcher CATALOGUE_KEY < key.txt
  berth agents secrets set Researcher CATALOGUE_KEY --host api.example.com --via header:X-Api-Key`,
    async run({ berth, args: [named, name = ''], options }) {
      const via = viaOf(options.via)
      const agentId = await agentIdOf(berth, named)
      const value = await readSecret(`${name}: `)
      const known = await find(berth, name)
      const more = { ...(options.host.length > 0 && { hosts: options.host }), ...(via && { via }) }
      const { secret } = known
        ? await unwrap(
            berth.PUT('/v0/secrets/{id}', { params: { path: { id: known.id } }, body: { value, ...more } }),
          )
        : await unwrap(berth.POST('/v0/secrets', { body: { name, value, ...more } }))
      const isAttached = known?.agents.some((agent) => agent.agentId === agentId)
      if (!isAttached)
        await unwrap(
          berth.POST('/v0/agents/{agentId}/secrets', {
            params: { path: { agentId } },
            body: { secretIds: [secret.id] },
          }),
        )
      return { data: secret, text: `${name} is set; it applies when the agent restarts` }
    },
  }),
  command({
    name: 'agents secrets rm',
    summary: 'take a secret from an agent; the workspace keeps it',
    usage: '<agent> <name>',
    async run({ berth, args: [named, name = ''] }) {
      const agentId = await agentIdOf(berth, named)
      const secret = await find(berth, name)
      if (!secret)
        throw new AdvisedError(
          `no secret is called ${name}`,
          `berth agents secrets ls ${agentId}`,
          EXIT.missing,
        )
      const params = { path: { agentId, secretId: secret.id } }
      const data = await unwrap(berth.DELETE('/v0/agents/{agentId}/secrets/{secretId}', { params }))
      return { data, text: `${agentId} no longer gets ${name}` }
    },
  }),
]

/** The workspace's secret of this name. */
async function find(berth: Berth, name: string) {
  const { secrets } = await unwrap(berth.GET('/v0/secrets'))
  return secrets.find((secret) => secret.name === name)
}

/** @throws UsageError */
function viaOf(text: string | undefined) {
  if (text === undefined) return undefined
  const [, as, name = ''] = /^(bearer|basic|(?:header|query)(?=:))(?::(.+))?$/.exec(text) ?? []
  if (as === 'header' || as === 'query') return { as, name } as const
  if ((as === 'bearer' || as === 'basic') && name === '') return { as } as const
  throw new UsageError('--via must be bearer, basic, header:NAME or query:NAME')
}
