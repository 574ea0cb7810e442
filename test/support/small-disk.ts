/** A disk so small that a test can fill it: a tmpfs, which requires the right to mount. */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode } from '../../src/lib/files.ts'

const run = promisify(execFile)
const MIB = 2 ** 20

export interface SmallDisk {
  dir: string
  /** Writes a file that leaves this many bytes free; another call replaces it. */
  fillTo(freeBytes: number): Promise<void>
  /** Removes that file. */
  empty(): Promise<void>
  /** Free bytes. */
  free(): Promise<number>
  unmount(): Promise<void>
}

/** Mounts it; undefined without the right to mount. */
export async function mountSmallDisk(mebibytes: number): Promise<SmallDisk | undefined> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-disk-'))
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', dir])
  } catch {
    await rm(dir, { recursive: true })
    return undefined
  }
  await chmod(dir, 0o711)
  const filler = join(dir, 'filler')
  const free = async () => {
    const { bavail, bsize } = await statfs(dir)
    return bavail * bsize
  }
  const empty = () => rm(filler, { force: true })
  return {
    dir,
    free,
    empty,
    async fillTo(freeBytes) {
      await empty()
      for (let left = (await free()) - freeBytes; left > 0; left -= MIB)
        await writeFile(filler, Buffer.alloc(Math.min(left, MIB)), { flag: 'a' }).catch((error) => {
          // Other programs have used space on the disk since then, so it is as full as it gets.
          if (!hasCode(error, 'ENOSPC')) throw error
        })
    },
    async unmount() {
      await run('umount', [dir])
      await rm(dir, { recursive: true })
    },
  }
}

export const NO_MOUNT = 'no right to mount'
