/** A2A over JSON-RPC, in the version that the client speaks. This module is loaded with the first request. */
import { formatSSEErrorEvent, formatSSEEvent } from '@a2a-js/sdk'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { VersionNotSupportedError } from '@a2a-js/sdk/errors'
import { JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server'
import type { Request, Response } from 'express'
import { toApiError } from '../../http/error-handler.ts'
import { openEventStream } from '../../http/event-stream.ts'
import { VERSIONS } from './card.ts'
import { type TaskServices, Tasks } from './tasks.ts'

/** Methods that send something to the agent, or stop it. */
const CHANGES = new Set([
  'SendMessage',
  'SendStreamingMessage',
  'CancelTask',
  'message/send',
  'message/stream',
  'tasks/cancel',
])
export const isChange = (method: unknown): boolean => typeof method === 'string' && CHANGES.has(method)

/** Answers a JSON-RPC request of a client who may talk to the agent. */
export async function answer(services: TaskServices, req: Request, res: Response): Promise<void> {
  const requestedVersion = req.get('a2a-version')?.trim() || '0.3'
  const isLegacy = requestedVersion !== '1.0'
  const id = idOf(req.body)
  const toError = isLegacy
    ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError
    : JsonRpcTransportHandler.mapToJSONRPCError
  const failed = (error: unknown) => ({ jsonrpc: '2.0', id, error: toError(error) })
  if (!VERSIONS.some((version) => version === requestedVersion)) {
    const message = `The agent speaks A2A ${VERSIONS.join(' and ')}`
    return void res.json(failed(new VersionNotSupportedError({ message })))
  }
  const handler = isLegacy ? LegacyJsonRpcTransportHandler : JsonRpcTransportHandler
  const tasks = guarded(new Tasks(services), req)
  const answered = await new handler(tasks).handle(req.body, new ServerCallContext({ requestedVersion }))
  if (!(Symbol.asyncIterator in answered)) return void res.json(answered)
  const updates = answered[Symbol.asyncIterator]()
  // Until the first update, the response can still be an error.
  const first = await updates.next().catch((error: unknown) => ({ error }))
  if ('error' in first) return void res.json(failed(first.error))
  const events = openEventStream(res)
  try {
    for (let one = first; !one.done && !res.closed; one = await updates.next())
      await events.write(formatSSEEvent(one.value))
  } catch (error) {
    await events.write(formatSSEErrorEvent(failed(error)))
  } finally {
    await updates.return?.()
    events.end()
  }
}

/** Replaces errors that are not for clients, as the API does, and logs them. */
function guarded(tasks: Tasks, req: Request): Tasks {
  const checked = (error: unknown): Error => {
    if (error instanceof Error && 'toErrorInfo' in error) return error
    const answer = toApiError(error)
    if (answer.status >= 500 && answer.code === 'internal') req.log.error({ err: error }, answer.message)
    return answer
  }
  return new Proxy(tasks, {
    get(target, name) {
      const method = Reflect.get(target, name, target)
      if (typeof method !== 'function') return method
      return (...given: unknown[]) => {
        const result: Promise<unknown> | AsyncIterable<unknown> = Reflect.apply(method, target, given)
        return Symbol.asyncIterator in result
          ? checkedUpdates(result, checked)
          : result.catch(rethrow(checked))
      }
    },
  })
}

async function* checkedUpdates<T>(updates: AsyncIterable<T>, checked: (error: unknown) => Error) {
  try {
    yield* updates
  } catch (error) {
    throw checked(error)
  }
}

const rethrow = (checked: (error: unknown) => Error) => (error: unknown) => {
  throw checked(error)
}

function idOf(body: unknown): string | number | null {
  const { id } = (body ?? {}) as { id?: unknown }
  return typeof id === 'string' || typeof id === 'number' ? id : null
}
