/** Tools for operations: the work that others start. */

import { isFinished } from '../../operations/catalog.ts'
import { ToolError, type Values } from '../api.ts'
import { type ObjectSchema, outputOf } from '../schema.ts'
import { type Call, readWait, routeTool, type Tool, waitFor } from '../tool.ts'

const WAIT: ObjectSchema = {
  type: 'object',
  properties: {
    id: { type: 'string', format: 'uuid', description: 'The id of the operation.' },
    waitSeconds: { type: 'integer', minimum: 0, maximum: 300, description: '50 by default; 0 only looks.' },
  },
  required: ['id'],
  additionalProperties: false,
}
/** How often it reports. */
const STEP_S = 5

export const operationTools: Tool[] = [
  routeTool({
    name: 'operations_list',
    title: 'List operations',
    description:
      'Lists the work that runs or has ended, newest first: pins, starts of agents, snapshots and so on.',
    route: 'listOperations',
    args: ['state', 'kind', 'target', 'order', 'limit', 'pageToken'],
    hints: { readOnly: true },
  }),
  {
    name: 'operations_wait',
    title: 'Wait for an operation',
    description: 'Waits for the end of an operation, and returns its state, step and error.',
    routes: ['getOperation'],
    hints: { readOnly: true },
    input: () => WAIT,
    output: (api) => outputOf(api.route('getOperation')),
    run: wait,
  },
  routeTool({
    name: 'operations_cancel',
    title: 'Cancel an operation',
    description: 'Cancels an operation that has not ended, and withdraws what it was to create.',
    route: 'cancelOperation',
    args: ['id'],
    hints: { destructive: true, idempotent: true },
  }),
]

async function wait({ api, args, report }: Call): Promise<Values> {
  const { id, waitSeconds } = args
  if (typeof id !== 'string') throw new ToolError('id: must be text')
  const until = performance.now() + readWait(waitSeconds) * 1000
  for (;;) {
    const left = Math.ceil((until - performance.now()) / 1000)
    const operation = await waitFor(api, id, Math.max(0, Math.min(STEP_S, left)))
    if (isFinished(operation.state) || left <= 0) return { data: operation }
    report(`${operation.state}: ${operation.step ?? operation.kind}`)
  }
}
