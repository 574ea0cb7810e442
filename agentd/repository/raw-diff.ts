import type { Git, RunOptions } from './git.ts'

/** A path whose content or mode differs. */
export interface RawChange {
  /** Modes in six octal digits, {@link NOTHING} if there is nothing. */
  modeBefore: string
  mode: string
  /** Ids, all zeros if there is nothing. */
  blobBefore: string
  blob: string
  /** Path in git's bytes, which may not be UTF-8; part of a larger buffer. */
  path: Buffer
}

const COLON = 0x3a

/** The mode of a missing entry. */
export const NOTHING = '000000'

/**
 * Lists the changes of commits; for a merge, the files that differ from all parents. So a history names every file
 * once.
 * @throws GitError
 */
export async function* changesOf(
  git: Git,
  commits: string[],
  options: RunOptions = {},
): AsyncGenerator<Pick<RawChange, 'mode' | 'path'> & { commit: string }> {
  const args = ['diff-tree', '--stdin', '--root', '-r', '-c', '--raw', '-z', '--no-renames', '--no-abbrev']
  const input = commits.map((commit) => `${commit}\n`).join('')
  let commit = ''
  let mode: string | undefined
  for await (const record of git.records(args, { ...options, input })) {
    if (mode !== undefined) {
      yield { commit, mode, path: record }
      mode = undefined
    } else if (record[0] === COLON) {
      const head = record.toString('latin1')
      // A colon and a mode for each parent, then the mode of the commit.
      mode = head.split(' ')[head.lastIndexOf(':') + 1]
    } else commit = record.toString('latin1')
  }
}

/**
 * Differences between two trees (`diff-tree -r`), or between a tree and the index (`diff-index --cached`): git's raw
 * format with `-z`, a record with modes and ids and then one with the path.
 * @throws GitError
 */
export async function* rawDiff(
  git: Git,
  command: string[],
  trees: string[],
  options: RunOptions = {},
): AsyncGenerator<RawChange> {
  let head: string[] | undefined
  const args = [...command, '--raw', '-z', '--no-renames', '--no-abbrev', ...trees]
  for await (const record of git.records(args, options)) {
    if (head === undefined) {
      head = record.toString('latin1').split(' ')
      continue
    }
    const [modeBefore, mode, blobBefore, blob] = head as [string, string, string, string]
    head = undefined
    yield { modeBefore: modeBefore.slice(1), mode, blobBefore, blob, path: record }
  }
}
