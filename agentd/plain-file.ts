/** Reads and replaces files that the agent also writes. */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { isErrno } from './agentd-errors.ts'

/** The file is a link, a FIFO or anything else that is not a plain file, or it is too large. */
export class NotPlain extends Error {}

/** The text of a file, undefined if it does not exist. @throws NotPlain, including for more than `maxBytes` */
export async function readPlainFile(path: string, maxBytes: number): Promise<string | undefined> {
  // A link could lead to another agent's file (in process mode), and a FIFO would block agentd forever.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(path, flags).catch((error) => {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined
    if (isErrno(error, 'ELOOP', 'ENXIO')) throw new NotPlain('it is not a plain file')
    throw error
  })
  if (!file) return undefined
  await using opened = file
  const stats = await opened.stat()
  if (!stats.isFile()) throw new NotPlain('it is not a plain file')
  if (stats.size > maxBytes) throw new NotPlain('it is too large')
  // The file may grow while it is read.
  const { bytesRead, buffer } = await opened.read(Buffer.alloc(stats.size), 0, stats.size, 0)
  return buffer.toString('utf8', 0, bytesRead)
}

/**
 * Replaces a file atomically, readable only by its owner: concurrent readers see the old or the new one.
 * @throws NotPlain if a folder has its name
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const part = `${path}.${randomUUID()}.part`
  try {
    await using file = await open(part, 'wx', 0o600)
    await file.writeFile(text)
    // Without it a crash of the machine may leave the new name with no content.
    await file.sync()
    await rename(part, path)
  } catch (error) {
    await unlink(part).catch(() => {})
    if (isErrno(error, 'EISDIR', 'ENOTEMPTY')) throw new NotPlain('it is not a plain file')
    throw error
  }
}
