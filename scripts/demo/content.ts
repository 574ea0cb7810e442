/** The files that `npm run demo:files` uploads: created on this machine, and kept for comparison. */
import { randomBytes } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Folder, walk } from './folder.ts'

const STEP = 4 * 1024 * 1024

/** Writes this many random bytes into a file, so that neither compression nor deduplication shrinks it. */
export async function makeLargeFile(path: string, size: number, live: (done: number) => void): Promise<void> {
  await using file: FileHandle = await open(path, 'w')
  for (let done = 0; done < size; done += STEP) {
    await file.write(randomBytes(Math.min(STEP, size - done)))
    live(done)
  }
}

/** A file on disk as the SDK accepts it: it is read while it is sent, never as a whole. */
export async function fileAt(path: string, name = basename(path), type = ''): Promise<File> {
  return new File([await openAsBlob(path)], name, { type })
}

/** The files of a folder, each named by its path in it. */
export async function filesIn(folder: Pick<Folder, 'path'>): Promise<File[]> {
  const files: File[] = []
  for await (const { path } of walk(folder.path)) files.push(await fileAt(join(folder.path, path), path))
  return files
}
