/**
 * Migrations keep everything that the previous version uses, because its processes keep running during and after a
 * migration. A migration that removes something says `-- Needs <version>: why`, and that version must be released.
 */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { lte } from 'semver'
import packageJson from '../../../package.json' with { type: 'json' }
import { type Migration, readMigrations } from '../../../src/db/migrations.ts'
import type { Pool } from '../../../src/db/pool.ts'
import { useDatabase } from '../../support/database.ts'

/** The last exempt migration: updates to 0.2.0 and up to here required a stop. */
const LAST_FREE = '0016_garbage_collection'

/** Facts that programs rely on (`gives`) and demands of a table on its writers (`asks`), with the columns concerned. */
const FACTS = `
  WITH col AS (
    SELECT c.relname AS tab, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
      c.relkind, a.atthasdef OR a.attidentity <> '' AS given
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0 AND NOT a.attisdropped
  ), fact AS (
    SELECT 'gives' AS sort, tab, format('column %s.%s of %s', tab, name, type) AS fact, ARRAY[name] AS cols FROM col
    UNION ALL SELECT 'gives', tab, format('NULL in %s.%s', tab, name), ARRAY[name] FROM col
      WHERE NOT required AND relkind <> 'v'
    UNION ALL SELECT 'gives', tab, format('default of %s.%s', tab, name), ARRAY[name] FROM col WHERE given
    UNION ALL SELECT 'gives', '', format('function %s(%s) of %s', proname, pg_get_function_identity_arguments(oid),
      pg_get_function_result(oid)), '{}' FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT sort, indrelid::regclass::text, regexp_replace(pg_get_indexdef(indexrelid), '^CREATE ', ''),
      ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey))
      FROM pg_index JOIN pg_class c ON c.oid = indrelid, unnest(ARRAY['gives', 'asks']) sort
      WHERE indisunique AND c.relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'asks', tab, format('value of %s.%s', tab, name), '{}' FROM col
      WHERE required AND NOT given AND relkind <> 'v'
    UNION ALL SELECT 'asks', conrelid::regclass::text, format('%s on %s', pg_get_constraintdef(oid), conrelid::regclass),
      ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey))
      FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'x')
  )
  SELECT sort, tab, fact, cols::text[] FROM fact`

interface Fact {
  sort: 'gives' | 'asks'
  tab: string
  fact: string
  cols: string[]
}

async function readFacts(pool: Pool): Promise<Fact[]> {
  return (await pool.query<Fact>(FACTS)).rows
}

/** Facts that processes of the previous version would miss after a migration, and demands that they would not meet. */
async function problemsOf(pool: Pool, sql: string): Promise<string[]> {
  const before = await readFacts(pool)
  await pool.query(sql)
  const after = await readFacts(pool)
  const without = (all: Fact[], others: Fact[], sort: Fact['sort']) =>
    all.filter((fact) => fact.sort === sort && !others.some((o) => o.sort === sort && o.fact === fact.fact))
  const known = new Set(before.flatMap(({ tab, cols }) => [tab, ...cols.map((name) => `${tab}.${name}`)]))
  // A program that does not know a column leaves it empty.
  const isAsked = ({ tab, cols }: Fact) =>
    known.has(tab) && (cols.length === 0 || cols.some((name) => known.has(`${tab}.${name}`)))
  return [
    ...without(before, after, 'gives').map(({ fact }) => `takes: ${fact}`),
    ...without(after, before, 'asks')
      .filter(isAsked)
      .map(({ fact }) => `asks: ${fact}`),
  ].sort()
}

const database = await useDatabase({ isEmpty: true })
const pool = database.pool

async function apply(migrations: Migration[]): Promise<void> {
  for (const { sql } of migrations) await pool.query(sql)
}

describe('incompatible changes', () => {
  beforeEach(async () => {
    await pool.query(`DROP SCHEMA public CASCADE; CREATE SCHEMA public;
      CREATE TABLE thing (id integer PRIMARY KEY, size integer NOT NULL DEFAULT 1, note text, kind text CHECK (kind = 'a'));
      CREATE UNIQUE INDEX thing_note ON thing (note);
      CREATE VIEW seen AS SELECT id FROM thing;
      CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql AS 'SELECT 2 * n'`)
  })
  const takes: [string, string, string[]][] = [
    ['a column', 'ALTER TABLE thing DROP COLUMN kind', ['column thing.kind of text', 'NULL in thing.kind']],
    [
      'a name',
      'ALTER TABLE thing RENAME COLUMN size TO bytes',
      ['column thing.size of integer', 'default of thing.size'],
    ],
    ['a type', 'ALTER TABLE thing ALTER COLUMN size TYPE bigint', ['column thing.size of integer']],
    ['NULL', 'ALTER TABLE thing ALTER COLUMN note SET NOT NULL', ['NULL in thing.note']],
    ['a default', 'ALTER TABLE thing ALTER COLUMN size DROP DEFAULT', ['default of thing.size']],
    [
      'a unique index',
      'DROP INDEX thing_note',
      ['UNIQUE INDEX thing_note ON public.thing USING btree (note)'],
    ],
    ['a view', 'DROP VIEW seen', ['column seen.id of integer']],
    ['a function', 'DROP FUNCTION twice', ['function twice(n integer) of integer']],
  ]
  for (const [what, sql, lost] of takes)
    it(`a migration that removes ${what} is detected`, async () => {
      const problems = (await problemsOf(pool, sql)).filter((line) => line.startsWith('takes'))
      assert.deepEqual(problems, lost.map((fact) => `takes: ${fact}`).sort())
    })
  const asks: [string, string, string][] = [
    [
      'a value that it does not give',
      'ALTER TABLE thing ADD COLUMN more text NOT NULL',
      'value of thing.more',
    ],
    [
      'unique values',
      'CREATE UNIQUE INDEX kinds ON thing (kind)',
      'UNIQUE INDEX kinds ON public.thing USING btree (kind)',
    ],
    ['a condition', 'ALTER TABLE thing ADD CHECK (size > 0)', 'CHECK ((size > 0)) on thing'],
    [
      'a row elsewhere',
      'ALTER TABLE thing ADD FOREIGN KEY (size) REFERENCES thing (id)',
      'FOREIGN KEY (size) REFERENCES thing(id) on thing',
    ],
  ]
  for (const [what, sql, fact] of asks)
    it(`a migration that demands ${what} is detected`, async () => {
      assert.deepEqual(await problemsOf(pool, sql), [`asks: ${fact}`])
    })
  it('a migration that only adds is accepted', async () => {
    const sql = `ALTER TABLE thing ADD COLUMN more text UNIQUE CHECK (more <> ''), ADD COLUMN count integer NOT NULL DEFAULT 0;
      ALTER TABLE thing ALTER COLUMN size DROP NOT NULL;
      CREATE INDEX thing_kind ON thing (kind);
      CREATE TABLE other (id integer PRIMARY KEY, name text NOT NULL CHECK (name <> ''))`
    assert.deepEqual(await problemsOf(pool, sql), [])
  })
})

describe('each migration', () => {
  it('each migration keeps what the previous version uses, or names the version it needs', async () => {
    await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    const all = await readMigrations()
    await apply(all.filter(({ name }) => name <= LAST_FREE))
    for (const { name, sql, needs } of all.filter((migration) => migration.name > LAST_FREE)) {
      const problems = await problemsOf(pool, sql)
      if (needs)
        assert.ok(
          lte(needs, packageJson.version),
          `${name}: ${needs} is not out yet, so the version before would not start on it`,
        )
      else assert.deepEqual(problems, [], `${name}: say \`-- Needs <version>: why\`, or leave them`)
    }
  })
})
