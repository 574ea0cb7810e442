/** What goes wrong with a Docker engine, as the port has it. */
import { EngineError } from '../../engine/error.ts'
import { toContainerError } from '../errors.ts'
import { ContainerError } from '../port.ts'

/** The HTTP status with which the engine refused; undefined for anything else than its refusal. */
export function statusOf(error: unknown): number | undefined {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined
  return typeof status === 'number' ? status : undefined
}

/** The engine's own words: dockerode puts a status and a blank around them. */
export function reasonOf(error: unknown): string {
  const { json, message } = error as { json?: { message?: unknown }; message: string }
  return typeof json?.message === 'string' ? json.message : message
}

/**
 * What a failed call means: the engine's refusal by its status and words; without a status there was no answer.
 * @param what the call, for the message.
 */
export function dockerError(error: unknown, what: string): unknown {
  if (error instanceof ContainerError || error instanceof EngineError || !(error instanceof Error))
    return toContainerError(error)
  const status = statusOf(error)
  const text = `${what}: ${reasonOf(error).trim()}`
  const options = { cause: error }
  // Errors of the connection have a code: ECONNREFUSED, EACCES, ECONNRESET, …
  if (status === undefined && 'code' in error)
    return new ContainerError('unreachable', `Docker cannot be reached: ${text}`, options)
  if (status === undefined) return toContainerError(error)
  if (status === 404) return new ContainerError('not_found', text, options)
  if (/no space left on device|disk quota exceeded/i.test(text))
    return new ContainerError('disk_full', text, options)
  return new ContainerError('internal', text, options)
}

/** For a call whose refusal with one of these statuses means that nothing was to be done: resolves to undefined. */
export function ignoring(...statuses: number[]): (error: unknown) => undefined {
  return (error) => {
    if (!statuses.includes(statusOf(error) ?? 0)) throw error
  }
}
