/** Content that is already on IPFS. */
import { allItems, startNow, unwrap, waitForOperation } from '../../../typescript/src/index.ts'
import { count, LIMIT, NO_WAIT, pairs } from '../arguments.ts'
import { command } from '../command.ts'
import { collect } from '../find.ts'
import { ago, table } from '../format.ts'
import { Progress } from '../progress.ts'

export const filePinCommands = [
  command({
    name: 'files pin',
    summary: 'pin a CID to the public network, and wait until its content is here',
    usage: '<cid>',
    options: {
      name: { about: 'its name', value: 'name' },
      group: { about: 'put it into this group', value: 'id' },
      keyvalue: { about: 'describe it: --keyvalue author=ada', value: 'name=value', many: true },
      node: { about: 'a node that has it: /ip4/…/p2p/…', value: 'address', many: true },
      'no-wait': NO_WAIT,
    },
    async run({ berth, args: [cid = ''], options, signal }) {
      const { name, group, node } = options
      const keyvalues = pairs(options.keyvalue)
      const started = await berth.POST('/v3/files/public/pin_by_cid', {
        params: { header: startNow() },
        body: {
          cid,
          ...(name && { name }),
          ...(group && { group_id: group }),
          ...(keyvalues && { keyvalues }),
          ...(node.length > 0 && { host_nodes: node }),
        },
      })
      const { data } = await unwrap(started)
      const operation = started.response.headers.get('operation-id')
      if (options['no-wait'])
        return { data: { ...data, operation }, text: `${data.id}  operation ${operation}` }
      using progress = new Progress(`pin ${cid}`)
      if (operation) await waitForOperation(berth, operation, { onProgress: progress.operation, signal })
      return { data: { ...data, status: 'pinned' }, text: `pinned ${cid}` }
    },
  }),
  command({
    name: 'pins ls',
    summary: 'list pins that are pending or have failed',
    options: { limit: LIMIT },
    async run({ berth, options }) {
      const jobs = await collect(
        allItems((page) => berth.GET('/v3/files/public/pin_by_cid', { params: { query: page } })),
        count(options.limit, 100),
      )
      const rows = jobs.map(({ id, cid, name, status, date_queued }) => ({
        ...{ id, status, queued: ago(date_queued), name, cid },
      }))
      return { data: jobs, text: table(rows) }
    },
  }),
  command({
    name: 'pins retry',
    summary: 'retry a failed pin',
    usage: '<id>',
    async run({ berth, args: [id = ''] }) {
      const params = { path: { id }, header: startNow() }
      const { data } = await unwrap(berth.POST('/v0/files/public/pin_by_cid/{id}/retry', { params }))
      return { data, text: `${data.status} ${data.cid}` }
    },
  }),
  command({
    name: 'pins rm',
    summary: 'withdraw a pin that is pending or has failed',
    usage: '<id>',
    async run({ berth, args: [id = ''] }) {
      const params = { path: { id }, header: startNow() }
      await unwrap(berth.DELETE('/v3/files/public/pin_by_cid/{id}', { params }))
      return { data: { id }, text: `withdrew ${id}` }
    },
  }),
]
