import type { Git, RunOptions } from './git.ts'

/** A path whose content or mode differs. */
export interface RawChange {
  /** Modes in six octal digits, {@link NOTHING} where there is nothing. */
  modeBefore: string
  mode: string
  /** Ids, all zeros where there is nothing. */
  blobBefore: string
  blob: string
  /** Path in git's bytes, which may be no UTF-8; a part of a larger buffer. */
  path: Buffer
}

/** The mode of what is not there. */
export const NOTHING = '000000'

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
