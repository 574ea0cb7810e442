import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, it } from 'node:test'
import { useFolder } from '../test/support/folder.ts'
import { Log } from './logs.ts'
import { relocateHome } from './moved-home.ts'
import { agentPaths } from './paths.ts'

const dir = await useFolder('berth-home-')

it("only the engine's state follows a moved home, in databases and JSON", async () => {
  const [former, home] = [join(dir, 'a', 'home'), join(dir, 'b "quoted"', 'home')]
  const paths = agentPaths(former)
  await mkdir(join(paths.state, 'state'), { recursive: true })
  const file = join('state', 'openclaw.sqlite')
  const database = new DatabaseSync(join(paths.state, file))
  database.exec(
    'PRAGMA journal_mode = WAL; CREATE TABLE jobs (store TEXT NOT NULL, n INTEGER, PRIMARY KEY (store, n)) STRICT',
  )
  const insert = database.prepare('INSERT INTO jobs VALUES (?, ?)')
  const texts = [former, `${former}/x`, `["${former}/y"]`, `${former}-other`, 'else']
  for (const [n, text] of texts.entries()) insert.run(text, n)
  database.close()
  await writeFile(
    join(paths.state, 'sessions.json'),
    JSON.stringify({ file: `${former}/s`, home: former, other: `${former}2` }),
  )
  await writeFile(join(paths.state, 'broken.sqlite'), 'no database')
  await mkdir(paths.root)
  await writeFile(join(paths.root, 'mine.json'), JSON.stringify(former))

  await relocateHome(paths, new Log())
  await cp(former, home, { recursive: true })
  const moved = agentPaths(home)
  for (let i = 0; i < 2; i++) await relocateHome(moved, new Log())
  const again = new DatabaseSync(join(moved.state, file))
  const rows = again.prepare('SELECT store FROM jobs ORDER BY n').all() as { store: string }[]
  again.close()
  assert.deepEqual(
    rows.map(({ store }) => store),
    [home, `${home}/x`, `["${home}/y"]`, `${former}-other`, 'else'],
  )
  assert.deepEqual(JSON.parse(await readFile(join(moved.state, 'sessions.json'), 'utf8')), {
    file: `${home}/s`,
    home,
    other: `${former}2`,
  })
  assert.equal(JSON.parse(await readFile(join(moved.root, 'mine.json'), 'utf8')), former)
})

it("a move drops the engine's leases that another host holds, and no others", async () => {
  const home = join(dir, 'c', 'home')
  const paths = agentPaths(home)
  await mkdir(join(paths.state, 'state'), { recursive: true })
  await relocateHome(paths, new Log(), 'former')
  const database = new DatabaseSync(join(paths.state, 'state', 'openclaw.sqlite'))
  after(() => database.close())
  database.exec('CREATE TABLE state_leases (scope TEXT PRIMARY KEY, payload_json TEXT) STRICT')
  const insert = database.prepare('INSERT INTO state_leases VALUES (?, ?)')
  for (const host of ['former', 'present']) insert.run(host, JSON.stringify({ owner: { host, pid: 1 } }))
  insert.run('without an owner', null)
  insert.run('of another form', 'text')
  const left = () =>
    database
      .prepare('SELECT scope FROM state_leases')
      .all()
      .map(({ scope }) => scope)

  await relocateHome(paths, new Log(), 'former')
  assert.equal(left().length, 4)
  await relocateHome(paths, new Log(), 'present')
  assert.deepEqual(left().sort(), ['of another form', 'present', 'without an owner'])
})

it("a folder or a FIFO instead of a home's marker neither stops nor delays the move", async () => {
  const home = join(dir, 'd', 'home')
  const mark = join(home, '.agentd-home')
  await mkdir(join(mark, 'full'), { recursive: true })
  await relocateHome(agentPaths(home), new Log(), 'host')
  assert.equal(await readFile(mark, 'utf8'), `${home}\nhost\n`)
  await rm(mark)
  execFileSync('mkfifo', [mark])
  await relocateHome(agentPaths(home), new Log(), 'host')
  assert.equal(await readFile(mark, 'utf8'), `${home}\nhost\n`)
})
