/** Keys that nobody set: made once, under the data folder. */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A random secret kept in `<dir>/<name>`. Two processes that start at once agree on one. */
export function readOrCreateSecret(dir: string, name: string): string {
  const path = join(dir, name)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    const draft = `${path}.${process.pid}`
    const file = openSync(draft, 'w', 0o600)
    writeSync(file, `${randomBytes(32).toString('base64url')}\n`)
    fsyncSync(file)
    closeSync(file)
    try {
      // Unlike a rename, a link fails when another process was faster.
      linkSync(draft, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
    return readFileSync(path, 'utf8').trim()
  }
}
