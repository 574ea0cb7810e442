/** Parses git's list of a commit's files, which may contain anything that the repository's author chose. */
import { isUtf8 } from 'node:buffer'
import { badRequest } from '../../../errors.ts'
import { assertEntryName } from '../../../storage/dag/folder.ts'

/** Maximum number of folders above a file. */
const DEPTH_LIMIT = 50

export interface GitFile {
  /** Relative to the requested folder. */
  path: string
  mode: '100644' | '100755' | '120000'
  /** Id of the blob. */
  blob: string
  size: number
}

/**
 * Parses the output of `git ls-tree -r -z --long`.
 * @returns files and symbolic links, and the entries that are not allowed in a template, one line each.
 * @throws ApiError 400 if it exceeds the limits of a template.
 */
export function readTree(
  listing: Buffer,
  limits: { maxFiles: number; maxBytes: number },
): { files: GitFile[]; problems: string[] } {
  const files: GitFile[] = []
  const problems: string[] = []
  let bytes = 0
  for (const line of split(listing)) {
    const [, mode = '', blob = '', digits = ''] = /^(\d{6}) \w+ ([0-9a-f]+) +(\d+|-)\t/.exec(line) ?? []
    const path = line.slice(line.indexOf('\t') + 1)
    if (mode === '160000') problems.push(`${show(path)}: is a submodule, which a template cannot have`)
    else if (!isPath(path)) problems.push(`${show(path)}: is not a valid file name in a template`)
    else files.push({ path, mode: mode as GitFile['mode'], blob, size: Number(digits) })
    bytes += Number(digits) || 0
    if (files.length + problems.length > limits.maxFiles)
      throw badRequest(`gitUrl: a template has at most ${limits.maxFiles} files`)
  }
  if (bytes > limits.maxBytes) throw badRequest(`gitUrl: a template has at most ${limits.maxBytes} bytes`)
  return { files, problems }
}

/** The entries; a name that is not UTF-8 becomes an invalid one. */
function* split(listing: Buffer): Generator<string> {
  for (let from = 0, end = 0; from < listing.length; from = end + 1) {
    end = listing.indexOf(0, from)
    const entry = listing.subarray(from, end)
    yield isUtf8(entry) ? entry.toString('utf8') : `${entry.toString('latin1')}/`
  }
}

function isPath(path: string): boolean {
  const names = path.split('/')
  if (names.length > DEPTH_LIMIT) return false
  try {
    for (const name of names) assertEntryName(name)
    return true
  } catch {
    return false
  }
}

/**
 * True for a symbolic link that stays in the folder, whatever other links exist: the target climbs only at its
 * beginning, where its path consists of real folders, and never above the top.
 */
export function staysInside(path: string, target: string): boolean {
  if (target === '' || target.startsWith('/')) return false
  const names = target.split('/').filter((name) => name !== '' && name !== '.')
  const climbs = names.findIndex((name) => name !== '..')
  const ups = climbs === -1 ? names.length : climbs
  return ups < path.split('/').length && !names.slice(ups).includes('..')
}

/** A path for people: one line, not too long. */
export const show = (path: string): string =>
  path.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]+/gu, '?').slice(0, 200)
