/** Lists the files that ignore rules keep out of commits: their owner may not know about the rule. */
import { join } from 'node:path'
import { type Git, GitError } from './git.ts'
import type { IgnoredFiles } from './protocol.ts'

/** Limits of a list, which is only a convenience. */
const LIST_MS = 20_000
const MAX_FILES = 10_000
const MAX_RULES = 50

/** The ignored files and folders, by the rule that ignores them, as far as they can be determined. Needs the mutex. */
export async function ignoredFiles(git: Git): Promise<IgnoredFiles[]> {
  const rules = new Map<string, IgnoredFiles>()
  try {
    const paths = await firstIgnored(git)
    if (paths.length === 0) return []
    const check = ['check-ignore', '--verbose', '-z', '--stdin']
    let fields: string[] = []
    for await (const record of git.records(check, { input: Buffer.concat(paths), timeoutMs: LIST_MS })) {
      if (fields.push(record.toString('utf8')) < 4) continue
      const [source, , pattern, path] = fields as [string, string, string, string]
      fields = []
      const file = source === join(git.own, 'info', 'exclude') ? '.git/info/exclude' : source
      const rule = `${pattern} of ${file}`
      const known = rules.get(rule)
      if (known) known.count++
      else if (rules.size < MAX_RULES) rules.set(rule, { rule, path, count: 1 })
    }
  } catch (error) {
    if (!(error instanceof GitError)) throw error
  }
  return [...rules.values()]
}

/** Paths, each followed by a zero. An ignored folder stands for its contents. */
async function firstIgnored(git: Git): Promise<Buffer[]> {
  const args = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory']
  const paths: Buffer[] = []
  for await (const path of git.records(args, { timeoutMs: LIST_MS })) {
    paths.push(Buffer.from(path), Buffer.from([0]))
    if (paths.length >= 2 * MAX_FILES) break
  }
  return paths
}
