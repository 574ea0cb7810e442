/** Checks the files of a skill that a worker sends, and compares a skill's folder with them. */
import { createHash } from 'node:crypto'
import { type FileHandle, lstat, opendir } from 'node:fs/promises'
import { AgentdError, isErrno } from './agentd-errors.ts'
import type { SkillFiles } from './protocol.ts'
import { inFolder, openBelow } from './tree.ts'

const MAX_FILES = 1000
const MAX_PATH_BYTES = 1024
const MAX_NAME_BYTES = 255

/** The names on the way from a root to a folder below it; at least one. */
export type Place = string[]
/** SHA-256 of each file, in hex, by its path. */
export type Hashes = ReadonlyMap<string, string>
/** How a folder compares with the files of a version; `part`: some files are missing, and nothing else differs. */
export type Likeness = 'none' | 'same' | 'part' | 'different'

/** Compares the folder at `place` with a version. It ends, whatever the agent has put there. */
export async function compareFolder(root: string, place: Place, version: Hashes): Promise<Likeness> {
  const opened = await openBelow(root, place.slice(0, -1)).catch(absent)
  if (!opened) return 'none'
  await using parent = opened
  const name = place.at(-1) as string
  const stats = await lstat(inFolder(parent, name)).catch(absent)
  if (!stats) return 'none'
  if (!stats.isDirectory()) return 'different'
  const inside = await openBelow(inFolder(parent, '.'), [name]).catch(absent)
  if (!inside) return 'different'
  await using folder = inside
  let found = 0
  for await (const path of filesBelow(folder)) {
    const expected = path === null ? undefined : version.get(path)
    if (path === null || expected === undefined) return 'different'
    if ((await hashOf(folder, path)) !== expected) return 'different'
    found += 1
  }
  return found === version.size ? 'same' : 'part'
}

/** The files of a request, by path. @throws AgentdError bad_request */
export function checkFiles({ cid, files, resolution }: SkillFiles): Map<string, Buffer> {
  const bad = (message: string) => new AgentdError('bad_request', message)
  if (typeof cid !== 'string' || cid.length > 512) throw bad('cid must be a text')
  if (resolution !== undefined && resolution !== 'replace' && resolution !== 'keep')
    throw bad('resolution must be replace or keep')
  if (!Array.isArray(files) || files.length === 0 || files.length > MAX_FILES)
    throw bad(`files must be a list of 1 to ${MAX_FILES}`)
  const checked = new Map<string, Buffer>()
  for (const file of files) {
    if (typeof file?.path !== 'string' || typeof file.base64 !== 'string')
      throw bad('files: each has path and base64')
    if (!isSafe(file.path)) throw bad('files: a path leaves the folder')
    if (checked.has(file.path)) throw bad('files: two have the same path')
    checked.set(file.path, Buffer.from(file.base64, 'base64'))
  }
  return checked
}

/** True for a path that stays below its folder, and creates no git repository (`.git`) inside the agent's. */
function isSafe(path: string): boolean {
  if (path.includes('\0') || Buffer.byteLength(path) > MAX_PATH_BYTES) return false
  return path
    .split('/')
    .every(
      (name) =>
        !['', '.', '..', '.git'].includes(name.toLowerCase()) && Buffer.byteLength(name) <= MAX_NAME_BYTES,
    )
}

/**
 * Paths of the files below an open folder. Yields null and stops at anything that no version contains: links and the
 * like, and more folders than anyone needs.
 */
async function* filesBelow(folder: FileHandle): AsyncGenerator<string | null> {
  const folders = ['']
  for (let seen = 0; seen < folders.length; seen += 1) {
    const prefix = folders[seen] as string
    const entries = await opendir(inFolder(folder, prefix || '.')).catch(absent)
    // An unreadable file may be anything.
    if (!entries) return yield null
    for await (const entry of entries) {
      const path = prefix + entry.name
      const isFolder =
        entry.isDirectory() && folders.length < MAX_FILES && Buffer.byteLength(path) <= MAX_PATH_BYTES
      if (isFolder) folders.push(`${path}/`)
      else if (entry.isFile()) yield path
      else return yield null
    }
  }
}

/** The current hash of a file; undefined if it is gone, or is no longer a file. */
async function hashOf(folder: FileHandle, path: string): Promise<string | undefined> {
  const opened = await openBelow(inFolder(folder, '.'), path.split('/')).catch(absent)
  if (!opened) return
  await using file = opened
  const stats = await file.stat()
  if (!stats.isFile()) return
  const hash = createHash('sha256')
  if (stats.size > 0)
    for await (const chunk of file.createReadStream({ start: 0, end: stats.size - 1, autoClose: false }))
      hash.update(chunk as Buffer)
  return hash.digest('hex')
}

/**
 * Turns errors for files that are gone, of another kind, or closed by their modes into undefined. @throws all others
 */
export function absent(error: unknown): undefined {
  const codes = ['not_found', 'not_a_file', 'outside', 'bad_request']
  if (error instanceof AgentdError && codes.includes(error.code)) return
  if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES')) return
  throw error
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
