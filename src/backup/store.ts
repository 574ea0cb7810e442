/** Where the files of backups are stored: a folder or an S3 bucket, with the same files at the same paths in both. */
import type { Readable } from 'node:stream'

/** An error whose message tells a person what to do. */
export class BackupError extends Error {
  override name = 'BackupError'
}

/** Paths are relative, separated by `/`. @throws BackupError from every method, naming the place. */
export interface BackupStore {
  /** The place as users name it: the folder, or `s3://bucket/prefix`. */
  readonly where: string
  /** Prepares the store for its only writer, and removes the remains of writers that died. */
  prepare(): Promise<void>
  /** Names of the files and folders in a folder, in no order; empty if the folder does not exist. */
  names(folder: string): Promise<string[]>
  /** Every file below a folder, in no order. */
  list(folder: string): AsyncIterable<string>
  /** Size of a file in bytes; null if it does not exist. */
  size(path: string): Promise<number | null>
  /** The content of a small file; null if it does not exist. */
  read(path: string): Promise<Buffer | null>
  /** The content of a file; fails with code `ENOENT` if it does not exist. */
  stream(path: string): Readable
  /** Writes a file completely or not at all, replacing an existing one. */
  write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>
  /** Waits until everything written so far survives a power loss. */
  settle(): Promise<void>
  /** Removes files, in any order; files that do not exist are skipped. */
  remove(paths: string[]): Promise<void>
  close(): void
}
