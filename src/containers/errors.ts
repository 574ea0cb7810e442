import { hasCode } from '../embedded/files.ts'
import { EngineError } from '../engine/error.ts'
import { ContainerError } from './port.ts'

/** What a driver throws for an error of the system or of the engine's installer. One's own abort stays as it is. */
export function toContainerError(error: unknown, signal?: AbortSignal): unknown {
  if (error instanceof ContainerError || signal?.aborted || !(error instanceof Error)) return error
  const { message } = error
  if (error instanceof EngineError) {
    const code = error.code === 'disk_full' ? 'disk_full' : error.code === 'failed' ? 'internal' : 'no_image'
    return new ContainerError(code, message, { cause: error })
  }
  if (hasCode(error, 'ENOSPC', 'EDQUOT'))
    return new ContainerError('disk_full', `no space is left: ${message}`, { cause: error })
  return new ContainerError('internal', message, { cause: error })
}
