/** The bytes of unfinished resumable uploads, which all web processes share. */
import { ApiError } from '../../errors.ts'

/** An upload, and the lease with which a request holds it. */
export interface HeldUpload {
  id: string
  lease: string
}

/** Only the request that holds an upload writes, cuts or imports its bytes. */
export interface UploadBytes {
  /** Whether they need room on a disk of this process. */
  readonly onDisk: boolean
  /** Makes room for a new upload. */
  create(id: string): Promise<void>
  /** The number of bytes that have arrived; null if they are lost. */
  count(id: string): Promise<number | null>
  /** Appends bytes behind `offset`, the number of those before. If `chunks` fails, what it has yielded is stored. */
  append(upload: HeldUpload, offset: number, chunks: AsyncIterable<Uint8Array>): Promise<void>
  /** Drops the bytes behind `offset`. */
  cut(upload: HeldUpload, offset: number): Promise<void>
  /** The first `length` bytes; all of them have arrived. */
  read(id: string, length: number): AsyncIterable<Uint8Array>
  remove(id: string): Promise<void>
  /** The ids of all uploads that have bytes, also of those that have no row. */
  list(): AsyncIterable<string[]>
  close(): void
}

/** The error for an upload whose bytes are gone: its client must begin again. */
export const bytesLost = (): ApiError =>
  new ApiError(410, 'expired', 'The bytes of the upload are not there any more')
