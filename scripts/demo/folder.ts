import { copyFile, mkdir, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The source of the folders' files: something that every installation of Berth has. */
export const NODE_MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url))
const MAX_FILE_BYTES = 8 * 1024 * 1024

export interface Folder {
  path: string
  files: number
  /** Bytes of all files. */
  size: number
  /** The first and the last package whose files it has, if it was made from `node_modules`. */
  first: string
  last: string
}

/**
 * Makes a folder with at least this many files and bytes: the first files of another folder in alphabetical order,
 * except hidden ones and those above 8 MiB. One installation gives the same folder each time.
 */
export async function makeFolder(
  path: string,
  least: { source: string; files: number; bytes: number },
): Promise<Folder> {
  const chosen: string[] = []
  let size = 0
  for await (const file of walk(least.source)) {
    if (file.size > MAX_FILE_BYTES) continue
    chosen.push(file.path)
    size += file.size
    if (chosen.length >= least.files && size >= least.bytes) break
  }
  if (size < least.bytes) throw new Error(`${least.source} is too small: run \`npm install\``)
  for (const file of chosen) {
    const target = join(path, file)
    await mkdir(dirname(target), { recursive: true })
    await copyFile(join(least.source, file), target)
  }
  return { path, files: chosen.length, size, first: packageOf(chosen[0]), last: packageOf(chosen.at(-1)) }
}

/** Every file below a folder that is not hidden, in alphabetical order, by its path relative to `root`. */
export async function* walk(root: string, below = ''): AsyncGenerator<{ path: string; size: number }> {
  const entries = await readdir(join(root, below), { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith('.')) continue
    const path = join(below, entry.name)
    if (entry.isDirectory()) yield* walk(root, path)
    else if (entry.isFile()) yield { path, size: (await stat(join(root, path))).size }
  }
}

const packageOf = (path = ''): string => /^(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path
