/** Splits a unified Git diff into files. Its contents are untrusted: they are only shown as text. */

export interface FileDiff {
  name: string
  kind: 'added' | 'removed' | 'modified'
  lines: string[]
}

/** The files of a diff, in order. The last file of a truncated diff is incomplete. */
export function filesOf(diff: string): FileDiff[] {
  const files: FileDiff[] = []
  let isHead = true
  for (const line of diff.split('\n')) {
    if (line.startsWith('diff --git ')) {
      isHead = true
      files.push({
        name: line.replace(/^diff --git "?a\/(.*?)"? "?b\/.*$/, '$1'),
        kind: 'modified',
        lines: [],
      })
      continue
    }
    const file = files.at(-1)
    if (!file) continue
    if (line.startsWith('@@')) isHead = false
    if (!isHead) file.lines.push(line)
    else if (line.startsWith('new file')) file.kind = 'added'
    else if (line.startsWith('deleted file')) file.kind = 'removed'
    else if (line.startsWith('Binary files')) file.lines.push(line)
  }
  return files
}
