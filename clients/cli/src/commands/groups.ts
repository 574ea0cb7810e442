/** Groups of files. */
import { allItems, unwrap } from '../../../typescript/src/index.ts'
import { count, LIMIT } from '../arguments.ts'
import { command } from '../command.ts'
import { collect, findFile, NETWORKS, type Network } from '../find.ts'
import { ago, table } from '../format.ts'

const NETWORK = { about: 'default public', value: 'network', choices: NETWORKS } as const
const networkOf = ({ network }: { network: string | undefined }) => (network ?? 'public') as Network

export const groupCommands = [
  command({
    name: 'groups ls',
    summary: 'list groups',
    options: { network: NETWORK, limit: LIMIT },
    async run({ berth, options }) {
      const path = { network: networkOf(options) }
      const groups = await collect(
        allItems((page) => berth.GET('/v3/groups/{network}', { params: { path, query: page } })),
        count(options.limit, 100),
      )
      const rows = groups.map(({ id, name, created_at }) => ({ id, name, created: ago(created_at) }))
      return { data: groups, text: table(rows) }
    },
  }),
  command({
    name: 'groups create',
    summary: 'create a group',
    usage: '<name>',
    options: { network: NETWORK },
    async run({ berth, args: [name = ''], options }) {
      const params = { path: { network: networkOf(options) } }
      const { data } = await unwrap(berth.POST('/v3/groups/{network}', { params, body: { name } }))
      return { data, text: data.id }
    },
  }),
  command({
    name: 'groups add',
    summary: 'put files into a group',
    usage: '<group> <id-or-cid...>',
    async run({ berth, args: [id = '', ...named] }) {
      const files = []
      for (const one of named) {
        const { id: fileId, network, name } = await findFile(berth, one)
        const path = { network, id, fileId }
        await unwrap(berth.PUT('/v3/groups/{network}/{id}/ids/{fileId}', { params: { path } }))
        files.push({ id: fileId, name })
      }
      return { data: files, text: files.map(({ name, id }) => `added ${name ?? id}`).join('\n') }
    },
  }),
  command({
    name: 'groups rm',
    summary: 'delete a group; its files stay',
    usage: '<group>',
    options: { network: NETWORK },
    async run({ berth, args: [id = ''], options }) {
      const path = { network: networkOf(options), id }
      await unwrap(berth.DELETE('/v3/groups/{network}/{id}', { params: { path } }))
      return { data: { id }, text: `deleted ${id}` }
    },
  }),
]
