/** The script that writes a migration, on a copy of `prisma/`. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { writeMigration } from '../../../scripts/schema/migration.ts'
import { migrationNames, parseMigration } from '../../../src/db/migrations.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { migrateDiff } from '../../support/prisma.ts'

const PRISMA = fileURLToPath(new URL('../../../prisma/', import.meta.url))
const SCRIPT = fileURLToPath(new URL('../../../scripts/schema/migration.ts', import.meta.url))

let database: TestDatabase
let dir: string
let copy: URL
before(async () => {
  database = await startDatabase()
  dir = await mkdtemp(join(tmpdir(), 'berth-prisma-'))
  await cp(PRISMA, dir, { recursive: true })
  copy = pathToFileURL(`${dir}/`)
})
after(async () => {
  await database?.stop()
  if (dir) await rm(dir, { recursive: true, force: true })
})

const written = async () => (await readdir(join(dir, 'migrations'))).sort()

describe('a new migration', () => {
  it('a new migration is refused if nothing differs', async () => {
    await assert.rejects(writeMigration('plan_colors', database.url, copy), /^Error: nothing differs/)
    assert.deepEqual(await written(), await migrationNames())
  })
  it('a new migration is refused under a malformed name', async () => {
    for (const name of ['', 'PlanColors', '0046_plan', 'plan-colors', '../plan', 'plan__colors', 'plan_'])
      await assert.rejects(writeMigration(name, database.url, copy), /^Error: usage: npm run migration/, name)
    assert.deepEqual(await written(), await migrationNames())
    const { status, stderr, stdout } = spawnSync(process.execPath, [SCRIPT, 'plan', 'colors'])
    assert.deepEqual([status, `${stdout}`], [1, ''])
    assert.match(`${stderr}`, /^usage: npm run migration/)
  })
  it('a new migration leads from the last one to schema.prisma and has no comment yet', async () => {
    const schema = (await readFile(join(dir, 'schema.prisma'), 'utf8')).replace(
      '  hotSwaps ',
      '  colors String[]\n  hotSwaps ',
    )
    const paint = `
      model Paint {
        id       String @id @default(uuid(7)) @db.Uuid
        planName String @map("plan")
        @@index([planName], map: "paint_plan")
        @@map("paint")
      }`
    await writeFile(join(dir, 'schema.prisma'), schema + paint)
    const file = await writeMigration('plan_colors', database.url, copy)
    const names = await migrationNames()
    const number = Number.parseInt(names.at(-1) ?? '', 10) + 1
    const next = `${String(number).padStart(4, '0')}_plan_colors`
    assert.deepEqual(await written(), [...names, next])
    assert.equal(fileURLToPath(file), join(dir, 'migrations', next, 'migration.sql'))

    const { sql, title } = parseMigration(next, await readFile(file, 'utf8'))
    assert.equal(title, '')
    await database.pool.query(sql)
    assert.equal(await migrateDiff(database.url, schema + paint), '')
  })
})
