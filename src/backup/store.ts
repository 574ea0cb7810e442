/** Where the files of backups are: a folder or a bucket of S3, with the same files by the same paths in both. */
import type { Readable } from 'node:stream'

/** An error whose message tells a person what to know or to do. */
export class BackupError extends Error {
  override name = 'BackupError'
}

/** Paths are relative, with `/` between their parts. @throws BackupError from every method, which names the place. */
export interface BackupStore {
  /** The place as people name it: the folder, or `s3://bucket/prefix`. */
  readonly where: string
  /** Makes it ready for the only process that writes to it: what writers that died have left there goes. */
  prepare(): Promise<void>
  /** Names of the files and folders in a folder, in no order; none where it is not there. */
  names(folder: string): Promise<string[]>
  /** Every file below a folder, in no order. */
  list(folder: string): AsyncIterable<string>
  /** Size of a file in bytes, null where it is not there. */
  size(path: string): Promise<number | null>
  /** The content of a small file, null where it is not there. */
  read(path: string): Promise<Buffer | null>
  /** The content of a file; fails with code `ENOENT` where it is not there. */
  stream(path: string): Readable
  /** Writes a file, in place of one that is there: whole or not at all. */
  write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>
  /** Waits until all that was written outlives a loss of power. */
  settle(): Promise<void>
  /** Removes files, in order or not; those that are not there are passed over. */
  remove(paths: string[]): Promise<void>
  close(): void
}
