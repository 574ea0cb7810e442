/** Folders for tests. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

/**
 * A new folder, which is removed after a test, or after the tests of the file.
 * @param name the beginning of its name.
 */
export async function useFolder(
  name: string,
  test: { after(fn: () => Promise<void>): void } = { after },
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), name))
  // Processes that the tests have ended may still write there.
  test.after(() => rm(dir, { recursive: true, force: true, maxRetries: 20 }))
  return dir
}
