/**
 * Writes the next migration from the difference between `schema.prisma` and the migrations: `npm run migration <name>`.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startDatabase } from '../../test/support/database.ts'
import { migrateDiff } from '../../test/support/prisma.ts'

const PRISMA = new URL('../../prisma/', import.meta.url)
const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/

const LEFT = `What is left to you:
- A comment why, at its beginning: \`npx berth migrate --check\` shows the first sentence.
- What Prisma has no word for: CHECK, COLLATE, indexes on expressions, triggers, and values for rows that are there.
- Where processes of the version before cannot go on with it, a line \`-- Needs <the last released version>: why\`.
- An index on a table that may be large: in src/db/late-indexes.ts instead.
Then npm run generate && npm run docs:data, and the rest of the recipe in CONTRIBUTING.md.
`

/**
 * @param databaseUrl of a database to which all migrations were applied.
 * @param prisma the folder with `schema.prisma` and `migrations`, with a slash at its end.
 * @returns the file that it wrote. It has no comment yet, and the migration tests fail until it has one.
 * @throws Error if the name is malformed or nothing differs; it writes nothing then.
 */
export async function writeMigration(name: string, databaseUrl: string, prisma: URL): Promise<URL> {
  checkName(name)
  const sql = await migrateDiff(databaseUrl, await readFile(new URL('schema.prisma', prisma), 'utf8'))
  if (sql === '')
    throw new Error(
      'nothing differs between prisma/schema.prisma and what the migrations make; what only its comments say is written by hand',
    )
  const migrations = new URL('migrations/', prisma)
  const last = Math.max(...(await readdir(migrations)).map((folder) => Number.parseInt(folder, 10) || 0))
  const folder = new URL(`${String(last + 1).padStart(4, '0')}_${name}/`, migrations)
  await mkdir(folder)
  const file = new URL('migration.sql', folder)
  // Prisma heads each statement with its kind, which would pass for the author's comment.
  await writeFile(file, `${sql.replaceAll(/^-- \w+\n/gm, '').trim()}\n`)
  return file
}

function checkName(name: string): void {
  if (!NAME.test(name))
    throw new Error('usage: npm run migration <name>, in small letters, digits and underscores: plan_colors')
}

async function main(name: string): Promise<void> {
  checkName(name)
  const database = await startDatabase()
  const file = await writeMigration(name, database.url, PRISMA).finally(() => database.stop())
  process.stdout.write(`${relative(process.cwd(), fileURLToPath(file))} is written. ${LEFT}`)
}

if (import.meta.main)
  await main(process.argv.slice(2).join(' ')).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
