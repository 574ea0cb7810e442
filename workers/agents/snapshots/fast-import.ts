/** Converts a folder to a stream from which `git fast-import` makes one commit (git-fast-import(1)). */
import { releasePassed } from '../../../src/lib/process/memory-at-rest.ts'
import type { FolderEntry } from '../../../src/storage/dag/folder.ts'
import { encodeName } from '../../../src/storage/dag/names.ts'

/** A folder that cannot become an agent's tree. */
export class UnfitFolder extends Error {
  override name = 'UnfitFolder'
}

const BRANCH = 'refs/berth/import'
const COMMITTER = 'Berth <berth@localhost>'
/** Otherwise collections of all memory take as much processor time as the stream. */
const RELEASE_BYTES = 4_194_304

/**
 * The stream. It ends with `done`, so that git rejects a stream that was cut.
 * @param options.executables paths of executable files.
 * @param options.maxBytes limit for all files together.
 * @throws UnfitFolder, and errors of reading the entries.
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
  let bytes = 0
  for await (const entry of entries) {
    const target = entry.type === 'symlink' ? encodeName(entry.target ?? '') : undefined
    const size = target?.length ?? entry.size
    bytes += size
    if (bytes > options.maxBytes) throw new UnfitFolder(`it has more than ${options.maxBytes} bytes`)
    const mode = target ? '120000' : executables.has(entry.path) ? '100755' : '100644'
    // The line break belongs to the text before: each piece of the stream costs time.
    yield Buffer.from(`\nM ${mode} inline ${quotePath(entry.path)}\ndata ${size}\n`)
    if (target) yield target
    else yield* exactly(entry, size)
  }
  yield Buffer.from('\ndone\n')
}

/** A path quoted as in C, the way git reads it. @throws UnfitFolder for a path that git's trees cannot contain. */
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

/** Git refuses this name in a tree, in any case. */
const isGitFolder = (name: string): boolean => name.toLowerCase() === '.git'

/** The stream announces the number of bytes; with any other number, git would read the rest as commands. */
async function* exactly(entry: FolderEntry, size: number): AsyncGenerator<Buffer> {
  let left = size
  for await (const chunk of entry.content()) {
    left -= chunk.length
    if (left < 0) break
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    releasePassed(chunk, RELEASE_BYTES)
  }
  if (left !== 0) throw new UnfitFolder(`${entry.path} has another size than it says`)
}
