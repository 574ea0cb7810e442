/** Long work. */
import { allItems, type Operation, unwrap, waitForOperation } from '../../../typescript/src/index.ts'
import { count, LIMIT } from '../arguments.ts'
import { command } from '../command.ts'
import { collect } from '../find.ts'
import { ago, details, span, table } from '../format.ts'
import { Progress } from '../progress.ts'
import { paint } from '../terminal.ts'

const STATES = ['queued', 'running', 'succeeded', 'failed', 'canceled'] as const
type State = (typeof STATES)[number]

export const operationCommands = [
  command({
    name: 'operations ls',
    summary: 'list operations, newest first',
    options: { state: { about: 'only this state', value: 'state', choices: STATES }, limit: LIMIT },
    async run({ berth, options }) {
      const state = options.state as State | undefined
      const operations = await collect(
        allItems((page) =>
          berth.GET('/v0/operations', {
            params: { query: { order: 'DESC', ...page, ...(state && { state }) } },
          }),
        ),
        count(options.limit, 100),
      )
      const rows = operations.map(({ id, kind, target, target_name, state, step, error, created_at }) => ({
        ...{ id, kind, on: target_name ?? target, state: stateText(state), began: ago(created_at) },
        now: error ?? (state === 'succeeded' ? null : step),
      }))
      return { data: operations, text: table(rows) }
    },
  }),
  command({
    name: 'operations show',
    summary: 'show an operation',
    usage: '<id>',
    async run({ berth, args: [id = ''] }) {
      const { data } = await unwrap(berth.GET('/v0/operations/{id}', { params: { path: { id } } }))
      return { data, text: operationText(data) }
    },
  }),
  command({
    name: 'operations wait',
    summary: 'wait for the end of an operation; exit code 1 if it fails',
    usage: '<id>',
    async run({ berth, args: [id = ''], signal }) {
      using progress = new Progress(`operation ${id}`)
      const data = await waitForOperation(berth, id, { onProgress: progress.operation, signal })
      progress[Symbol.dispose]()
      return { data, text: `${data.kind} ${stateText(data.state)}` }
    },
  }),
  command({
    name: 'operations cancel',
    summary: 'cancel an operation',
    usage: '<id>',
    async run({ berth, args: [id = ''] }) {
      const { data } = await unwrap(berth.DELETE('/v0/operations/{id}', { params: { path: { id } } }))
      return { data, text: `${data.kind} ${stateText(data.state)}` }
    },
  }),
]

const STYLES = {
  failed: 'red',
  succeeded: 'green',
  running: 'yellow',
  queued: 'yellow',
  canceled: 'dim',
} as const

const stateText = (state: State): string => paint(STYLES[state], state)

function operationText(operation: Operation): string {
  const { id, kind, target, target_name, state, step, attempts, error, error_code } = operation
  const { created_at, started_at, finished_at, next_attempt_at } = operation
  const took = started_at && finished_at && Date.parse(finished_at) - Date.parse(started_at)
  return details({
    ...{ id, kind, on: target_name ? `${target_name} (${target})` : target, state: stateText(state) },
    step: step ?? undefined,
    error: error ? `${error}${error_code ? ` (${error_code})` : ''}` : undefined,
    attempts,
    began: ago(created_at),
    took: took ? span(took) : undefined,
    'next attempt': next_attempt_at ?? undefined,
  })
}
