/** Reads a file that the agent also writes. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
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
