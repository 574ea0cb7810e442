/** A folder as a stream that `git fast-import` makes one commit of (git-fast-import(1)). */
import type { FolderEntry } from '../../src/storage/folder.ts'
import { encodeName } from '../../src/storage/names.ts'

/** A folder that cannot be the tree of an agent. */
export class UnfitFolder extends Error {
  override name = 'UnfitFolder'
}

const BRANCH = 'refs/berth/import'
const COMMITTER = 'Berth <berth@localhost>'

/**
 * The stream; it ends with `done`, so that git does not take a stream that was cut for a whole one.
 * @param options.executables paths of files that are executable.
 * @param options.maxBytes of all files together, above which it is given up.
 * @throws UnfitFolder, and what reading the entries throws.
 */
export async function* fastImport(
  entries: AsyncIterable<FolderEntry>,
  options: { executables: Iterable<string>; message: string; maxBytes: number },
): AsyncGenerator<Buffer> {
  const executables = new Set(options.executables)
  const seconds = Math.floor(Date.now() / 1000)
  const message = Buffer.from(options.message)
  yield Buffer.from(
    `feature done\ncommit ${BRANCH}\ncommitter ${COMMITTER} ${seconds} +0000\ndata ${message.length}\n`,
  )
  yield message
  yield Buffer.from('\n')
  let bytes = 0
  for await (const entry of entries) {
    const target = entry.type === 'symlink' ? encodeName(entry.target ?? '') : undefined
    const size = target?.length ?? entry.size
    bytes += size
    if (bytes > options.maxBytes) throw new UnfitFolder(`it has more than ${options.maxBytes} bytes`)
    const mode = target ? '120000' : executables.has(entry.path) ? '100755' : '100644'
    yield Buffer.from(`M ${mode} inline ${quotePath(entry.path)}\ndata ${size}\n`)
    if (target) yield target
    else yield* exactly(entry, size)
    yield Buffer.from('\n')
  }
  yield Buffer.from('done\n')
}

/** A path as git reads it where it is quoted, as in C. @throws UnfitFolder for one that no tree of git has. */
export function quotePath(path: string): string {
  const names = path.split('/')
  if (path.includes('\0') || names.some((name) => ['', '.', '..'].includes(name) || isGitFolder(name)))
    throw new UnfitFolder(`a path of it is ${JSON.stringify(path)}`)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what git wants escaped
  const quoted = path.replace(/["\\\x01-\x1f\x7f]/g, (character) =>
    character === '"' || character === '\\'
      ? `\\${character}`
      : `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
  return `"${quoted}"`
}

/** Git refuses the name in a tree, in any case. */
const isGitFolder = (name: string): boolean => name.toLowerCase() === '.git'

/** The stream says how many bytes come: with others, what follows would be taken for commands. */
async function* exactly(entry: FolderEntry, size: number): AsyncGenerator<Buffer> {
  let left = size
  for await (const chunk of entry.content()) {
    left -= chunk.length
    if (left < 0) break
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  }
  if (left !== 0) throw new UnfitFolder(`${entry.path} has another size than it says`)
}
