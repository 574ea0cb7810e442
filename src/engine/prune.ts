import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Parts of the package that a gateway behind Berth never opens: its program for cloud machines of its own, its
 * web interface (Berth turns it off), its manual, and the driver for a desktop that a container does not have.
 */
const FOLDERS = [
  'node_modules/openclaw/dist/worker',
  'node_modules/openclaw/dist/control-ui',
  'node_modules/openclaw/docs',
  'node_modules/@trycua',
]

/** For compilers, debuggers and readers. Other Markdown stays: skills and hooks are written in it. */
const FILES = /\.(map|d\.ts|d\.mts|d\.cts)$|^(readme|changelog|history)\.md$/i

/** Removes from an installed engine what running it does not need: about half of its bytes. */
export async function prune(dir: string): Promise<void> {
  for (const folder of FOLDERS) await rm(join(dir, folder), { recursive: true, force: true })
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && FILES.test(entry.name)) await rm(join(entry.parentPath, entry.name))
}
