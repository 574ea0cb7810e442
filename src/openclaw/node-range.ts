/**
 * The versions of Node that an engine supports, from `engines.node` of its package. OpenClaw exits at once on any
 * other.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { satisfies, valid, validRange } from 'semver'
import { hasCode } from '../lib/files.ts'

/** Ranges by file: a package of OpenClaw takes 15 ms to parse, and never changes. */
const ranges = new Map<string, string>()

/** The range of an engine installed in a folder; empty if its package names none. */
export async function readNodeRange(folder: string): Promise<string> {
  const file = join(folder, 'node_modules/openclaw/package.json')
  const known = ranges.get(file)
  if (known) return known
  const text = await readFile(file, 'utf8').catch((error) => {
    if (hasCode(error, 'ENOENT')) return '{}'
    throw error
  })
  const range = JSON.parse(text).engines?.node
  if (typeof range !== 'string') return ''
  ranges.set(file, range)
  return range
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
