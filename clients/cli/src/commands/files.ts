/** Files: lists, records and links. */
import { allItems, startNow, unwrap } from '../../../typescript/src/index.ts'
import { count, LIMIT } from '../arguments.ts'
import { command } from '../command.ts'
import { UsageError } from '../errors.ts'
import { collect, findFile, NETWORKS } from '../find.ts'
import { ago, bytes, details, readSpan, table } from '../format.ts'
import { linkTo } from '../gateway.ts'

export const fileCommands = [
  command({
    name: 'files ls',
    summary: 'list files, newest first',
    options: {
      network: { about: 'default public', value: 'network', choices: NETWORKS },
      name: { about: 'only names with this part', value: 'text' },
      group: { about: 'only files of this group', value: 'id' },
      limit: LIMIT,
    },
    async run({ berth, options }) {
      const path = { network: (options.network ?? 'public') as 'public' | 'private' }
      const { name, group } = options
      const files = await collect(
        allItems((page) =>
          berth.GET('/v3/files/{network}', {
            params: { path, query: { ...page, ...(name && { name }), ...(group && { group }) } },
          }),
        ),
        count(options.limit, 100),
      )
      const rows = files.map(({ name, size, number_of_files, cid, created_at }) => ({
        name,
        size: bytes(size),
        files: number_of_files > 1 ? number_of_files : null,
        added: ago(created_at),
        cid,
      }))
      return { data: files, text: table(rows, 'none; berth files add <path> adds one') }
    },
  }),
  command({
    name: 'files show',
    summary: 'show a file',
    usage: '<id-or-cid>',
    async run({ berth, args }) {
      const file = await findFile(berth, args[0])
      const { id, name, cid, network, size, number_of_files, mime_type, group_id, created_at, keyvalues } =
        file
      const pairs = Object.entries(keyvalues).map(([key, value]) => `${key}=${value}`)
      const fields = {
        ...{ name, cid, id, network, size: bytes(size), files: number_of_files, type: mime_type },
        group: group_id ?? undefined,
        added: ago(created_at),
        keyvalues: pairs.length > 0 ? pairs : undefined,
      }
      return { data: file, text: details(fields) }
    },
  }),
  command({
    name: 'files link',
    summary: 'print a link that shows a file to anyone; a private file’s link expires',
    usage: '<id-or-cid>',
    options: { expires: { about: 'for a private file; default 15m', value: 'time' } },
    async run({ berth, target, args, options }) {
      const file = await findFile(berth, args[0])
      const ms = options.expires === undefined ? undefined : readSpan(options.expires)
      if (options.expires !== undefined && !ms)
        throw new UsageError(`${options.expires} is not a time like 15m or 7d`)
      const url = await linkTo(berth, target.url, file, { seconds: ms && ms / 1000 })
      return { data: { url, network: file.network, cid: file.cid }, text: url }
    },
  }),
  command({
    name: 'files rm',
    summary: 'delete files; content that other files have stays',
    usage: '<id-or-cid...>',
    async run({ berth, args }) {
      const deleted: { id: string; cid: string; network: string }[] = []
      for (const named of args) {
        const { id, cid, network } = await findFile(berth, named)
        const params = { path: { network, id }, header: startNow() }
        await unwrap(berth.DELETE('/v3/files/{network}/{id}', { params }))
        deleted.push({ id, cid, network })
      }
      return { data: deleted, text: deleted.map(({ cid }) => `deleted ${cid}`).join('\n') }
    },
  }),
]
