/** Files of this machine as `Blob`s, which are read while they are sent. */
import { openAsBlob } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'

export interface Local {
  name: string
  /** A file, or the files of a folder by their paths in it. */
  content: Blob | [path: string, content: Blob][]
  bytes: number
  /** Hidden files that were left out. */
  hidden: number
}

/** @param withHidden includes names that begin with a dot, and folders such as `.git`. */
export async function openLocal(path: string, { withHidden = false } = {}): Promise<Local> {
  const name = basename(resolve(path))
  if (!(await stat(path)).isDirectory()) {
    const content = await openAsBlob(path)
    return { name, content, bytes: content.size, hidden: 0 }
  }
  const content: [string, Blob][] = []
  let hidden = 0
  const walk = async (folder: string, within: string) => {
    const entries = await readdir(folder, { withFileTypes: true })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.name.startsWith('.') && !withHidden) {
        hidden++
        continue
      }
      const at = join(folder, entry.name)
      const info = entry.isSymbolicLink() ? await stat(at) : entry
      if (info.isDirectory()) await walk(at, `${within}${entry.name}/`)
      else if (info.isFile()) content.push([`${within}${entry.name}`, await openAsBlob(at)])
    }
  }
  await walk(path, '')
  return { name, content, bytes: content.reduce((sum, [, { size }]) => sum + size, 0), hidden }
}

export const stdinAsBlob = async (): Promise<Blob> => new Blob([await buffer(process.stdin)])
