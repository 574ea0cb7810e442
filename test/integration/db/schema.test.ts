/** Compares `schema.prisma` with the database that the migrations create. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { version } from '@prisma/schema-engine-wasm'
import { type Model, readModels } from '../../../scripts/schema/model.ts'
import { useDatabase } from '../../support/database.ts'
import { migrateDiff } from '../../support/prisma.ts'

const database = await useDatabase()

/** Changes of the database, and the statement that would undo each. */
const CHANGES: [what: string, change: string, undo: RegExp][] = [
  ['a new table', 'CREATE TABLE extra (id uuid PRIMARY KEY)', /DROP TABLE "extra"/],
  ['a table less', 'DROP TABLE subdomain_holder', /CREATE TABLE "subdomain_holder"/],
  ['a new column', 'ALTER TABLE file ADD COLUMN extra text', /DROP COLUMN "extra"/],
  ['a column less', 'ALTER TABLE worker DROP COLUMN parts', /ADD COLUMN\s+"parts" JSONB/],
  [
    'the type of a column',
    'ALTER TABLE repair ALTER COLUMN target TYPE varchar(9)',
    /"target" SET DATA TYPE TEXT/,
  ],
  ['a column that may be null', 'ALTER TABLE snapshot ALTER COLUMN cid DROP NOT NULL', /"cid" SET NOT NULL/],
  ['a column that may not', 'ALTER TABLE agent ALTER COLUMN vibe SET NOT NULL', /"vibe" DROP NOT NULL/],
  ['a default', 'ALTER TABLE operation ALTER COLUMN epoch SET DEFAULT 1', /"epoch" SET DEFAULT 0/],
  [
    'a default that is a function call',
    'ALTER TABLE secret ALTER COLUMN created_at SET DEFAULT now()',
    /"created_at" SET DEFAULT clock_timestamp\(\)/,
  ],
  [
    'a primary key',
    'ALTER TABLE repair_total DROP CONSTRAINT repair_total_pkey',
    /"repair_total_pkey" PRIMARY KEY/,
  ],
  [
    'a missing foreign key',
    'ALTER TABLE swap DROP CONSTRAINT swap_workspace_id_fkey',
    /ADD CONSTRAINT "swap_workspace_id_fkey"/,
  ],
  [
    'the action of a foreign key',
    'ALTER TABLE gateway DROP CONSTRAINT gateway_workspace_id_fkey, ADD CONSTRAINT gateway_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES workspace',
    /"gateway_workspace_id_fkey".*ON DELETE CASCADE/,
  ],
  [
    'a missing unique index',
    'ALTER TABLE skill DROP CONSTRAINT skill_name',
    /CREATE UNIQUE INDEX "skill_name"/,
  ],
  ['a missing index', 'DROP INDEX domain_agent', /CREATE INDEX "domain_agent"/],
  [
    'the columns of an index',
    'DROP INDEX operation_list; CREATE INDEX operation_list ON operation (workspace_id)',
    /CREATE INDEX "operation_list" ON "operation"\("workspace_id", "id"\)/,
  ],
  [
    'the rows of an index',
    'DROP INDEX agent_list; CREATE INDEX agent_list ON agent (workspace_id, id) WHERE purged_at IS NULL',
    /CREATE INDEX "agent_list".*deleted_at/,
  ],
]

describe('schema.prisma', () => {
  it('schema.prisma is read by the engine version of the generated client', async () => {
    const generated = new URL('../../../src/db/generated/internal/class.ts', import.meta.url)
    assert.ok((await readFile(generated, 'utf8')).includes(`"engineVersion": "${version()}"`))
  })

  it('schema.prisma describes the database that the migrations create', async () => {
    assert.equal(await migrateDiff(database.url), '')
    assert.deepEqual(await statedInDatabase(), statedInComments(readModels()))
  })

  it('every single difference from schema.prisma is detected', async () => {
    for (const [, change] of CHANGES) await database.pool.query(change)
    const script = await migrateDiff(database.url)
    for (const [what, , undo] of CHANGES) assert.match(script, undo, what)
  })

  it('differences from the comments in schema.prisma are detected', async () => {
    const before = await statedInDatabase()
    await database.pool.query(`
      ALTER TABLE membership DROP CONSTRAINT membership_role_check;
      ALTER TABLE template ALTER COLUMN slug TYPE text COLLATE "default";
      DROP INDEX operation_unfinished;
      DROP INDEX file_size; CREATE INDEX file_size ON file (workspace_id) WHERE status = 'pinned'`)
    const now = new Set(await statedInDatabase())
    assert.deepEqual(
      before.filter((line) => !now.has(line)).map((line) => line.split(' ON ')[0]),
      [
        'file: CREATE INDEX file_size',
        'membership.role: One of: owner, member, viewer',
        'operation: CREATE INDEX operation_unfinished',
        'template.slug: COLLATE "C"',
      ],
    )
  })
})

/** Constraints that Prisma cannot express, from the comments of the models: `<table>.<column>: <line>`, sorted. */
function statedInComments(models: Model[]): string[] {
  const lines = (documentation = '') =>
    documentation.split('\n').filter((line) => /^(One of: |CHECK |COLLATE |CREATE )/.test(line))
  return models
    .flatMap(({ dbName, documentation, fields }) => [
      ...lines(documentation).map((line) => `${dbName}: ${line}`),
      ...fields.flatMap((field) =>
        lines(field.documentation).map((line) => `${dbName}.${field.dbName ?? field.name}: ${line}`),
      ),
    ])
    .sort()
}

/** The same from the catalogue: constraints, collations, and indexes on expressions or with included columns. */
async function statedInDatabase(): Promise<string[]> {
  const { rows } = await database.pool.query<{ table: string; column: string | null; line: string }>(`
    SELECT c.conrelid::regclass::text AS table, a.attname AS column, pg_get_constraintdef(c.oid) AS line
    FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid AND NOT t.relispartition
    LEFT JOIN pg_attribute a ON a.attrelid = c.conrelid AND ARRAY[a.attnum] = c.conkey
    WHERE c.contype = 'c' AND c.connamespace = 'public'::regnamespace
    UNION ALL
    SELECT a.attrelid::regclass::text, a.attname, format('COLLATE "%s"', o.collname)
    FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid JOIN pg_collation o ON o.oid = a.attcollation
    WHERE t.relkind IN ('r', 'p') AND NOT t.relispartition AND t.relnamespace = 'public'::regnamespace AND o.collname <> 'default' AND a.attnum > 0
    UNION ALL
    SELECT i.indrelid::regclass::text, NULL, pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
    WHERE t.relnamespace = 'public'::regnamespace AND NOT t.relispartition AND (0 = ANY (i.indkey) OR i.indnkeyatts < i.indnatts)`)
  return rows
    .filter(({ table }) => table !== '_prisma_migrations')
    .map(({ table, column, line }) => `${table}${column ? `.${column}` : ''}: ${oneOf(line)}`)
    .sort()
}

/** Turns `CHECK ((x = ANY (ARRAY['a'::text, 'b'::text])))` into `One of: a, b`, and leaves other lines unchanged. */
function oneOf(line: string): string {
  const values = /^CHECK \(\(\w+ = ANY \(ARRAY\[(.*)\]\)\)\)$/.exec(line)?.[1]
  return values ? `One of: ${values.replaceAll(/'(\w+)'::text/g, '$1')}` : line
}
