import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isErrno } from './agentd-errors.ts'

/** Makes a folder and its parents. Node's recursive mkdir reports ENOENT if the quota is used up; this reports EDQUOT. */
export async function makeFolders(path: string, mode = 0o700): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (isErrno(error, 'ENOENT')) {
      await makeFolders(dirname(path), mode)
      await mkdir(path, { mode })
    } else if (!isErrno(error, 'EEXIST') || !(await isFolder(path))) throw error
  }
}

const isFolder = (path: string) =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
