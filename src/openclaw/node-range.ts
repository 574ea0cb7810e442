/**
 * The versions of Node that an engine supports, from `engines.node` of its package. OpenClaw exits at once on any
 * other.
 */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { satisfies, valid, validRange } from 'semver'
import { hasCode } from '../lib/files.ts'

/** Ranges by file, with the time of the file's last change: a package of OpenClaw takes 15 ms to parse. */
const ranges = new Map<string, { mtimeMs: number; range: string }>()

/** The range of an engine installed in a folder; empty if its package names none. */
export async function readNodeRange(folder: string): Promise<string> {
  const file = join(folder, 'node_modules/openclaw/package.json')
  try {
    const { mtimeMs } = await stat(file)
    const known = ranges.get(file)
    if (known?.mtimeMs === mtimeMs) return known.range
    const node = JSON.parse(await readFile(file, 'utf8')).engines?.node
    const range = typeof node === 'string' ? node : ''
    ranges.set(file, { mtimeMs, range })
    return range
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  }
}

/** Why an engine cannot run on a version of Node; null if it can, or if the range or the version is unknown. */
export function nodeObstacle(
  version: string,
  { range, node }: { range: string | undefined; node: string | undefined },
): string | null {
  if (!range || validRange(range) === null || !valid(node)) return null
  if (satisfies(node ?? '', range, { includePrerelease: true })) return null
  return `OpenClaw ${version} needs Node ${range}, and would run on Node ${node}`
}
