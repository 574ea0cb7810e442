import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { endProcess, processIdentity } from '../../../src/lib/process/process-identity.ts'
import { postgresUrl } from '../../../src/standalone/postgres.ts'
import { readRecord } from '../../../src/standalone/postgres-cluster.ts'
import { holdUp } from '../../support/processes.ts'
import { eventually, newFolder, query, runProgram, start } from './helpers.ts'

const postmasterPid = async (location: string) =>
  Number((await readFile(join(location, 'pg18/postmaster.pid'), 'utf8')).split('\n')[0])

/** Names in a folder; none if it does not exist yet. */
const list = (path: string) => readdir(path).catch((): string[] => [])

/** Kills only the postmaster, as the kernel does when memory runs out. */
async function kill(location: string): Promise<void> {
  const postmaster = await processIdentity(await postmasterPid(location))
  assert.ok(postmaster)
  assert.ok(await endProcess(postmaster, [['SIGKILL', 60_000]]))
}

/**
 * Starts a supervisor on a new folder, and pauses it during initdb. Only the supervisor moves initdb's result into
 * place.
 */
async function holdInInitdb(t: TestContext) {
  for (let tries = 0; tries < 10; tries++) {
    const dataDir = await newFolder()
    const home = join(dataDir, 'postgres')
    const program = runProgram(t, './start-postgres.program.ts', [dataDir])
    const pid = program.child.pid as number
    await eventually(async () => {
      const names = await list(home)
      const fresh = names.find((name) => /\.new-[0-9a-f]+$/.test(name))
      return names.includes('pg18') || (fresh && (await list(join(home, fresh))).includes('base'))
    }, 'initdb is at work')
    await holdUp(pid)
    if (!(await list(home)).includes('pg18')) return { dataDir, home, program, pid }
    // This process was itself paused until initdb was over.
    process.kill(pid, 'SIGCONT')
    program.child.stdin?.end()
    await program.ended
  }
  throw new Error('initdb was never seen at work')
}

test('a first start creates a database that the next start finds again', async (t) => {
  const dataDir = await newFolder()
  assert.equal(await postgresUrl(dataDir), null)
  const first = await start(t, dataDir)
  assert.equal(first.adopted, false)
  assert.equal(first.location, join(dataDir, 'postgres'))
  assert.equal(await postgresUrl(dataDir), first.url)
  await query(first.url, 'CREATE TABLE kept (name text)')
  await query(first.url, 'INSERT INTO kept VALUES ($1)', ['Ünïcode'])
  await first.stop()
  await assert.rejects(query(first.url, 'SELECT 1'), /ECONNREFUSED/)

  const second = await start(t, dataDir)
  assert.equal(second.adopted, false)
  assert.equal(second.url, first.url)
  assert.deepEqual(await query(second.url, 'SELECT name, upper(name) FROM kept'), [
    { name: 'Ünïcode', upper: 'ÜNÏCODE' },
  ])
})

test('the server is durable, in UTC and UTF-8, and its password is known only to the supervisor', async (t) => {
  const dataDir = await newFolder()
  const { url, location } = await start(t, dataDir)
  const rows = await query(
    url,
    `SELECT name, setting FROM pg_settings WHERE name IN
       ('fsync', 'synchronous_commit', 'full_page_writes', 'TimeZone', 'server_encoding', 'listen_addresses')`,
  )
  assert.deepEqual(Object.fromEntries(rows.map((row) => [row.name, row.setting])), {
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    TimeZone: 'UTC',
    server_encoding: 'UTF8',
    listen_addresses: '127.0.0.1',
  })

  const wrong = new URL(url)
  wrong.password = 'wrong'
  await assert.rejects(query(wrong.href, 'SELECT 1'), { code: '28P01' })
  assert.equal((await stat(join(dataDir, 'postgres.json'))).mode & 0o777, 0o600)
  const { password } = new URL(url)
  const commandLine = await readFile(`/proc/${await postmasterPid(location)}/cmdline`, 'utf8').catch(() => '')
  for (const text of [commandLine, await readFile(join(location, 'postgres.log'), 'utf8')]) {
    assert.ok(!text.includes(password))
  }
})

test('the server of a killed supervisor is taken over', async (t) => {
  const dataDir = await newFolder()
  const program = runProgram(t, './start-postgres.program.ts', [dataDir])
  const { url, location } = (await program.line) as { url: string; location: string }
  const pid = await postmasterPid(location)
  const session = new pg.Client({ connectionString: url })
  await session.connect()
  t.after(() => session.end().catch(() => {}))
  process.kill(-(program.child.pid as number), 'SIGKILL')
  await program.ended

  const adopted = await start(t, dataDir)
  assert.equal(adopted.adopted, true)
  assert.equal(adopted.url, url)
  assert.equal(await postmasterPid(location), pid)
  assert.equal((await session.query('SELECT 1 AS one')).rows[0].one, 1, 'its sessions continue')
  session.on('error', () => {})
  await adopted.stop()
  assert.equal((await start(t, dataDir)).adopted, false)
})

test('a row that was committed before all processes were killed is recovered', async (t) => {
  const dataDir = await newFolder()
  const program = runProgram(t, './start-postgres.program.ts', [dataDir])
  const { url, location } = (await program.line) as { url: string; location: string }
  await query(url, 'CREATE TABLE kept (n int)')
  await query(url, 'INSERT INTO kept SELECT generate_series(1, 1000)')
  // A session in the middle of its work does not notice the postmaster's death, and keeps the shared memory.
  const busy = query(url, 'SELECT count(*) FROM generate_series(1, 20000000)').catch(() => {})
  await eventually(
    async () => (await query(url, `SELECT FROM pg_stat_activity WHERE query LIKE '%20000000%'`)).length > 1,
    'the long statement runs',
  )
  program.child.kill('SIGKILL')
  await program.ended
  await kill(location)

  const second = await start(t, dataDir)
  assert.equal(second.adopted, false)
  assert.deepEqual(await query(second.url, 'SELECT count(*)::int AS n FROM kept'), [{ n: 1000 }])
  await busy
})

test('a killed server restarts by itself at the same address', async (t) => {
  const { url, location, stop } = await start(t, await newFolder())
  await query(url, 'CREATE TABLE kept (n int)')
  for (const _ of [1, 2]) {
    await kill(location)
    const rows = await eventually(
      () => query(url, 'SELECT n FROM kept').catch(() => null),
      'it answers again',
    )
    assert.deepEqual(rows, [])
  }
  await stop()
  await assert.rejects(query(url, 'SELECT 1'), /ECONNREFUSED/)
})

test('a postmaster.pid that names another program blocks no start', async (t) => {
  const dataDir = await newFolder()
  const first = await start(t, dataDir)
  const path = join(first.location, 'pg18/postmaster.pid')
  const lines = (await readFile(path, 'utf8')).split('\n')
  await first.stop()

  const { user } = (await readRecord(dataDir)) as { user: { uid?: number; gid?: number } }
  const stranger = spawn('sleep', ['600'], { ...user, stdio: 'ignore' })
  t.after(() => stranger.kill())
  await once(stranger, 'spawn')
  await writeFile(path, [stranger.pid, ...lines.slice(1)].join('\n'))
  const second = await start(t, dataDir)
  assert.equal(second.adopted, false)
  assert.equal(stranger.exitCode, null)
  assert.equal(stranger.signalCode, null)
})

for (const [what, group] of [
  ['with initdb', true],
  ['alone', false],
] as const) {
  test(`a supervisor killed ${what} in the middle of initdb blocks no later start`, async (t) => {
    const { dataDir, home, program, pid } = await holdInInitdb(t)
    process.kill(group ? -pid : pid, 'SIGKILL')
    await program.ended
    assert.ok(!(await readdir(home)).includes('pg18'))

    const { url } = await start(t, dataDir)
    assert.deepEqual(await query(url, 'SELECT 1 AS one'), [{ one: 1 }])
    assert.deepEqual((await readdir(home)).sort(), ['pg18', 'postgres.log'])
  })
}

test('another port is used if the remembered one is taken', async (t) => {
  const dataDir = await newFolder()
  const first = await start(t, dataDir)
  await query(first.url, 'CREATE TABLE kept (n int)')
  await first.stop()
  const intruder = createServer().listen(Number(new URL(first.url).port), '127.0.0.1')
  await once(intruder, 'listening')
  t.after(() => intruder.close())

  const second = await start(t, dataDir)
  assert.notEqual(second.url, first.url)
  assert.deepEqual(await query(second.url, 'SELECT n FROM kept'), [])
  assert.equal(await postgresUrl(dataDir), second.url)
})

test('a server that cannot start reports the reason', async (t) => {
  const dataDir = await newFolder()
  const { location, stop } = await start(t, dataDir)
  await stop()
  await rm(join(location, 'pg18/global/pg_control'))
  await assert.rejects(start(t, dataDir), {
    name: 'PostgresStartError',
    message: /ended while starting.*postgres\.log:.*could not find the database system/s,
  })
})

test('a cluster of another major version is not replaced by an empty one', async (t) => {
  const dataDir = await newFolder()
  const { stop } = await start(t, dataDir)
  await stop()
  const home = join(dataDir, 'postgres')
  await rename(join(home, 'pg18'), join(home, 'pg17'))
  await assert.rejects(start(t, dataDir), { name: 'PostgresStartError', message: /another major version/ })
})
