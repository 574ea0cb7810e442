import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isErrno } from './agentd-errors.ts'

/**
 * Creates a folder and its parents. Node's recursive mkdir reports ENOENT if the quota is used up; this reports EDQUOT.
 */
export async function makeFolders(path: string, mode = 0o700): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return
    if (!isErrno(error, 'ENOENT')) throw error
    await makeFolders(dirname(path), mode)
    await mkdir(path, { mode })
  }
}
