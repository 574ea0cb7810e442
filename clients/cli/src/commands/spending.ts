import { unwrap } from '../../../typescript/src/index.ts'
import { command } from '../command.ts'
import { UsageError } from '../errors.ts'
import { agentIdOf } from '../find.ts'
import { table } from '../format.ts'

const BY = ['day', 'model', 'agent', 'session'] as const
type By = (typeof BY)[number]

export const spendingCommands = [
  command({
    name: 'spending',
    summary: 'show what models cost, of the workspace or of one agent',
    usage: '[agent]',
    options: {
      by: { about: 'rows by day, model, agent, session, or several: agent,model', value: 'list' },
      from: { about: 'the first day; default the first of this month', value: 'date' },
      to: { about: 'the last day', value: 'date' },
    },
    async run({ berth, args, options: { by, from, to } }) {
      const groupBy = readBy(by ?? (args.length > 0 ? 'model' : 'agent,model'))
      const agentId = args[0] === undefined ? undefined : await agentIdOf(berth, args[0])
      const query = {
        groupBy,
        limit: 1000,
        ...(from && { from }),
        ...(to && { to }),
        ...(agentId && { agentId }),
      }
      const querySerializer = { array: { style: 'form' as const, explode: false } }
      const body = await unwrap(berth.GET('/v0/spending', { params: { query }, querySerializer }))
      // With `format=csv` it would be a text.
      const { data } = body as Exclude<typeof body, string>
      const rows = data.rows.map((row) => ({
        ...Object.fromEntries(groupBy.map((name) => [name, row[name === 'agent' ? 'agentId' : name]])),
        ...amounts(row),
      }))
      const first = Object.keys(rows[0] ?? {})[0] ?? 'total'
      return {
        data,
        text: table([...rows, { [first]: 'total', ...amounts(data.total) }].map(inOrder(groupBy))),
      }
    },
  }),
]

function readBy(text: string): By[] {
  const names = text.split(',').map((name) => name.trim())
  for (const name of names)
    if (!BY.includes(name as By)) throw new UsageError(`--by: ${name} is none of ${BY.join(', ')}`)
  return names as By[]
}

interface Amounts {
  usd: string
  requests: number
  errors: number
  tokens: { input: number; output: number }
}

const amounts = ({ usd, requests, errors, tokens }: Amounts) => ({
  usd,
  requests,
  errors,
  'tokens in': tokens.input,
  out: tokens.output,
})

/** The same columns in each row; the total has no value in most. */
const inOrder = (groupBy: By[]) => (row: Record<string, unknown>) => ({
  ...Object.fromEntries(groupBy.map((name) => [name, row[name] ?? null])),
  ...row,
})
