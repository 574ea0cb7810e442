/** The files of `prisma/migrations`, and the facts that their first comment declares. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'

const FOLDER = new URL('../../prisma/migrations/', import.meta.url)

export interface Migration {
  name: string
  sql: string
  checksum: string
  /** The first sentence of its comment. */
  title: string
  /** The earliest version of Berth that can use the resulting schema; undefined if the previous version can. */
  needs: string | undefined
}

/** The names of this version's migrations, in order. */
export async function migrationNames(): Promise<string[]> {
  const entries = await readdir(FOLDER, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

/** This version's migrations, in order. */
export async function readMigrations(): Promise<Migration[]> {
  return Promise.all(
    (await migrationNames()).map(async (name) =>
      parseMigration(name, await readFile(new URL(`${name}/migration.sql`, FOLDER), 'utf8')),
    ),
  )
}

/**
 * A migration that removes something that the previous version uses declares `-- Needs 0.4.0: why`, on its own line.
 */
export function parseMigration(name: string, sql: string): Migration {
  const comment = /^(?:\s*--.*\n)*/.exec(`${sql}\n`)?.[0] ?? ''
  const words = comment.split(/\s+/).filter((word) => !/^-*$/.test(word))
  const text = words.join(' ')
  return {
    name,
    sql,
    checksum: createHash('sha256').update(sql).digest('hex'),
    title: /^.*?(?=[.:;] |\.?$)/.exec(text)?.[0] ?? '',
    needs: /^-- Needs (\d+\.\d+\.\d+): \S/m.exec(sql)?.[1],
  }
}
