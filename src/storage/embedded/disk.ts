import { StorageError } from '../port.ts'

/** Runs a file operation; whatever goes wrong is `unavailable`. */
export async function onDisk<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof StorageError ? error : diskError(error)
  }
}

/** Runs a file operation: null when the file is not there, any other failure is `unavailable`. */
export async function ifThere<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error instanceof StorageError ? error : diskError(error)
  }
}

function diskError(error: unknown): StorageError {
  const { code, message } = error as NodeJS.ErrnoException
  const reason =
    code === 'ENOSPC' ? 'The disk of the IPFS blocks is full' : 'The disk of the IPFS blocks failed'
  return new StorageError('unavailable', `${reason}: ${message}`, { cause: error })
}
