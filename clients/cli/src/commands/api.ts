import { text } from 'node:stream/consumers'
import { errorOf } from '../../../typescript/src/errors.ts'
import { command } from '../command.ts'
import { UsageError } from '../errors.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export const apiCommands = [
  command({
    name: 'api',
    summary: 'call any route of the API, as `/docs` of your Berth lists them',
    usage: '<method> <path>',
    options: {
      data: { about: 'the JSON body, or - for stdin', value: 'json', short: 'd' },
      header: { about: 'Prefer: wait=30', value: 'line', short: 'H', many: true },
    },
    more: `  berth api GET '/v3/files/public?limit=1'
  berth api POST /v0/agents/x7f3k2ab/model/pause`,
    async run({ target, args: [given = '', path = ''], options, signal }) {
      const method = METHODS.find((one) => one === given.toUpperCase())
      if (!method) throw new UsageError(`${given} is none of ${METHODS.join(', ')}`)
      if (!path.startsWith('/')) throw new UsageError('the path begins with /')
      const body = options.data === '-' ? await text(process.stdin) : options.data
      const response = await fetch(target.url + path, {
        ...{ method, signal },
        headers: {
          authorization: `Bearer ${target.key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...Object.fromEntries(options.header.map(readHeader)),
        },
        ...(body !== undefined && { body }),
      })
      const said = await response.text()
      const data = parsed(said)
      if (!response.ok) throw errorOf(response, data)
      return { data, text: typeof data === 'string' ? data : JSON.stringify(data, null, 2) }
    },
  }),
]

function readHeader(line: string): [string, string] {
  const at = line.indexOf(':')
  if (at < 1) throw new UsageError(`${line} must be like Prefer: wait=30`)
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}
