/**
 * Opens only what is below a folder, while others rename and link in it: checks the real path of an opened file
 * (`/proc/self/fd/N`), and then uses a folder by its descriptor, not by its name.
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readlink } from 'node:fs/promises'
import { AgentdError, isErrno } from './agentd-errors.ts'

// O_NONBLOCK: a FIFO without a writer would block the thread forever; it has no effect on a file.
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY

/** The path of `name` in an open folder, wherever that folder is now. */
export function inFolder(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`
}

/**
 * Opens a file or folder below `root` for reading; the caller closes it. Follows links while they stay below.
 * @param names the way below `root`; empty for `root` itself.
 * @throws AgentdError not_found, outside, not_a_file, bad_request
 */
export async function openBelow(root: string, names: string[]): Promise<FileHandle> {
  await using top = await openRoot(root)
  return await keepInside(top, await open(inFolder(top, names.join('/')), READ).catch(refuse))
}

/**
 * Opens a folder below `root`, and creates missing ones on the way; the caller closes it.
 * @throws AgentdError outside, not_a_file, bad_request, disk_full
 */
export async function makeFolder(root: string, names: string[]): Promise<FileHandle> {
  await using top = await openRoot(root)
  let folder = await open(inFolder(top, '.'), FOLDER)
  for (const name of names) {
    await using parent = folder
    await mkdir(inFolder(parent, name)).catch((error) => isErrno(error, 'EEXIST') || refuse(error))
    folder = await keepInside(top, await open(inFolder(parent, name), FOLDER).catch(refuse))
  }
  return folder
}

/** Opens the root itself. Refuses a link instead of the root, which could lead anywhere. */
function openRoot(root: string): Promise<FileHandle> {
  return open(root, FOLDER | constants.O_NOFOLLOW).catch(refuse)
}

async function keepInside(top: FileHandle, opened: FileHandle): Promise<FileHandle> {
  const [root, path] = await Promise.all([realPathOf(top), realPathOf(opened)])
  if (path === root || path.startsWith(`${root}/`)) return opened
  await opened.close()
  throw new AgentdError('outside', 'path: leads out of the root')
}

const realPathOf = (opened: FileHandle) => readlink(`/proc/self/fd/${opened.fd}`)

/** Converts errors of the file system into errors for the client. @throws always */
export function refuse(error: unknown): never {
  const as = (code: AgentdError['code'], message: string) => new AgentdError(code, message, { cause: error })
  if (isErrno(error, 'ENOENT', 'ELOOP')) throw as('not_found', 'path: there is nothing there')
  if (isErrno(error, 'ENOTDIR', 'EISDIR', 'ENXIO', 'ENODEV'))
    throw as('not_a_file', 'path: is of another kind')
  if (isErrno(error, 'ENAMETOOLONG')) throw as('bad_request', 'path: too long')
  if (isErrno(error, 'EACCES', 'EPERM')) throw as('bad_request', 'path: closed to the agent itself')
  if (isErrno(error, 'ENOSPC', 'EDQUOT', 'EFBIG')) throw as('disk_full', 'no space is left')
  throw error
}
