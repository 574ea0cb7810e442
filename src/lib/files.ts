import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'

/** A name next to `path` that no other process uses: a file is created there and renamed to `path` once complete. */
export function temporaryName(path: string): string {
  return `${path}.new-${randomBytes(6).toString('hex')}`
}

/**
 * Removes what killed processes left behind under temporary names of `path`, if it has not changed for `idleMs`
 * milliseconds (0 if nobody else can be working on it).
 */
export async function removeLeftovers(path: string, idleMs: number): Promise<void> {
  const folder = dirname(path)
  const names = await readdir(folder).catch(() => [])
  for (const name of names.filter((entry) => entry.startsWith(`${basename(path)}.new-`))) {
    const leftover = join(folder, name)
    const changed = (await stat(leftover).catch(() => null))?.mtimeMs ?? Date.now()
    if (Date.now() - changed >= idleMs) await rm(leftover, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Writes a new file and waits until its bytes are on disk. Fails with EEXIST if the path is taken. */
export async function writeDurably(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Replaces a file so that a reader, or a start after a crash, sees either the old or the new content, never a mix. */
export async function replaceFile(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const temporary = temporaryName(path)
  try {
    await writeDurably(temporary, content, mode)
    await renameDurably(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Renames within one folder, and waits until the folder's new listing is on disk. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to)
  const folder = await open(dirname(to), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** The content of a text file, or null if it does not exist. */
export async function readIfExists(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  }
}

/** True for a system error with one of these codes (`ENOENT`, …). */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  if (!(error instanceof Error)) return false
  const { code, errno } = error as NodeJS.ErrnoException
  // Node has no name for EDQUOT: its code is `Unknown system error -122`.
  return codes.includes(String(code)) || (codes.includes('EDQUOT') && errno === -constants.errno.EDQUOT)
}

/**
 * A random secret in `<dir>/<name>`, created once. Two processes that start at the same time agree on one.
 * @param former the name of its file in earlier versions, whose secret is taken over.
 */
export function readOrCreateSecret(dir: string, name: string, former?: string): string {
  const path = join(dir, name)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    const draft = `${path}.${process.pid}`
    const file = openSync(draft, 'w', 0o600)
    writeSync(file, `${(former && readSecret(join(dir, former))) || randomBytes(32).toString('base64url')}\n`)
    fsyncSync(file)
    closeSync(file)
    try {
      // Unlike a rename, a link fails if another process was faster.
      linkSync(draft, path)
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    } finally {
      rmSync(draft)
    }
    return readFileSync(path, 'utf8').trim()
  }
}

/** Empty if there is no such file. */
function readSecret(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  }
}
