/** Tools, and the kind of tool that calls one declared route. */
import { randomUUID } from 'node:crypto'
import { parametersOf } from '../http/openapi.ts'
import type { Route } from '../http/route.ts'
import { isFinished, type OperationState } from '../operations/catalog.ts'
import { type Api, ToolError, type Values } from './api.ts'
import { inputOf, type ObjectSchema, outputOf } from './schema.ts'

/** A call of a tool in progress. */
export interface Call {
  api: Api
  args: Values
  /** Tells the client what is happening, if it wants to know. */
  report(message: string): void
}

export interface Tool {
  name: string
  title: string
  description: string
  /** The routes that it calls: a key that may not call all of them does not see the tool. */
  routes: readonly string[]
  /** Changes nothing; otherwise whether it may destroy something, and whether a repeat changes nothing more. */
  hints: { readOnly?: true; destructive?: true; idempotent?: true }
  input(api: Api): ObjectSchema
  output(api: Api): ObjectSchema
  /** Returns the structured result. @throws ToolError */
  run(call: Call): Promise<Values>
}

interface RouteTool extends Pick<Tool, 'name' | 'title' | 'description' | 'hints'> {
  route: string
  /** The parameters and fields of the route that the tool offers. */
  args: readonly string[]
  /** Parameters and fields that it always sends. */
  fixed?: Values
}

/** How long a call waits for its operation by default: clients give up after a minute. */
const WAIT_S = 50
const MAX_WAIT_S = 300
/** Most operations end within this time, so that most calls are one request. */
const FIRST_WAIT_S = 5
/** How often a call that waits reports. */
const STEP_S = 5

/** Additional arguments of tools that start an operation. */
const OF_OPERATIONS = {
  waitSeconds: {
    type: 'integer',
    minimum: 0,
    maximum: MAX_WAIT_S,
    description: `How long to wait for the end, ${WAIT_S} by default. The work continues after that: operations_wait waits again.`,
  },
  idempotencyKey: {
    type: 'string',
    maxLength: 255,
    description: 'A key of your choice: a repeat of the call with the same key starts nothing new.',
  },
}
const OPERATION = {
  operation: {
    type: 'object',
    properties: { id: { type: 'string' }, state: { type: 'string' }, step: { type: ['string', 'null'] } },
    required: ['id', 'state'],
    description: 'The work that the call started.',
  },
}

/** A tool that calls one route. Its arguments, its result and its messages are the route's. */
export function routeTool({ route: id, args, fixed = {}, ...tool }: RouteTool): Tool {
  return {
    ...tool,
    routes: [id],
    input: (api) => inputOf(api.route(id), args, api.route(id).operation ? OF_OPERATIONS : {}),
    output: (api) => outputOf(api.route(id), api.route(id).operation ? OPERATION : {}),
    async run(call) {
      const { waitSeconds, idempotencyKey, ...given } = call.args
      const route = call.api.route(id)
      const own = route.operation ? given : call.args
      for (const name of Object.keys(own))
        if (!args.includes(name)) throw new ToolError(`${name}: there is no such argument`)
      const input = inPlaces(route, { ...own, ...fixed })
      if (!route.operation) return (await call.api.call(id, input)).body
      return runOperation(call, { id, input }, readWait(waitSeconds), readKey(idempotencyKey))
    },
  }
}

/** Each argument in the path, the query or the body, as its route declares it. */
function inPlaces(route: Route, args: Values) {
  const places = new Map(parametersOf(route).map(({ name, in: place }) => [String(name), String(place)]))
  const entries = Object.entries(args)
  const inPlace = (place: string | undefined) => entries.filter(([name]) => places.get(name) === place)
  return {
    path: Object.fromEntries(inPlace('path')),
    query: Object.fromEntries(inPlace('query')),
    ...(route.body && { body: Object.fromEntries(inPlace(undefined)) }),
  }
}

/**
 * Calls a route that starts an operation, and waits for its end. A repeat with the same idempotency key starts nothing,
 * and its response is the one of the end.
 */
async function runOperation(
  { api, report }: Call,
  { id, input }: { id: string; input: ReturnType<typeof inPlaces> },
  waitSeconds: number,
  key: string,
): Promise<Values> {
  const until = performance.now() + waitSeconds * 1000
  const left = () => Math.ceil((until - performance.now()) / 1000)
  const ask = (seconds: number) => {
    const headers = { prefer: `wait=${Math.max(0, seconds)}`, 'idempotency-key': key }
    return api.call(id, { ...input, headers })
  }
  let answer = await ask(Math.min(FIRST_WAIT_S, waitSeconds))
  const operationId = answer.headers['operation-id']
  if (typeof operationId !== 'string') return answer.body
  const look = (wait: number) => waitFor(api, operationId, wait)
  let operation = await look(0)
  if (!isFinished(operation.state)) {
    while (!isFinished(operation.state) && left() > 0) {
      report(`${operation.state}: ${operation.step ?? operation.kind}`)
      operation = await look(Math.min(STEP_S, left()))
    }
    // A second deletion would find nothing, and the response has nothing to add.
    if (isFinished(operation.state) && api.route(id).method !== 'delete') answer = await ask(1)
  }
  const { state, step } = operation
  return { ...answer.body, operation: { id: operationId, state, step } }
}

interface Operation {
  kind: string
  state: OperationState
  step: string | null
}

/** The operation once it has ended, or after some seconds. */
export async function waitFor(api: Api, id: string, seconds: number): Promise<Operation> {
  const query = seconds > 0 ? { wait: seconds } : {}
  return (await api.call('getOperation', { path: { id }, query })).body.data as Operation
}

export function readWait(value: unknown = WAIT_S): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_WAIT_S) return value
  throw new ToolError(`waitSeconds: must be a whole number up to ${MAX_WAIT_S}`)
}

function readKey(value: unknown = `mcp-${randomUUID()}`): string {
  if (typeof value === 'string' && /^[\x21-\x7e]{1,255}$/.test(value)) return value
  throw new ToolError('idempotencyKey: must be 1 to 255 visible ASCII characters')
}
