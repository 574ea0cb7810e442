/** Manual statements as a migrated database describes them. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { type Definition, statement, type Type } from '../../../src/db/statements/statement.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'

type AnyDefinition = Definition<readonly Type[], Record<string, Type>>

const FOLDER = new URL('../../../src/db/statements/', import.meta.url)

let database: TestDatabase
let client: pg.Client
before(async () => {
  database = await startDatabase()
  client = new pg.Client(database.url)
  await client.connect()
})
after(async () => {
  await client?.end()
  await database?.stop()
})

const definitions: AnyDefinition[] = []
for (const file of readdirSync(FOLDER))
  for (const exported of Object.values<{ definition?: AnyDefinition }>(await import(`${FOLDER}${file}`)))
    if (exported?.definition) definitions.push(exported.definition)

describe('a manual statement', () => {
  it('a manual statement has a unique name', () => {
    assert.ok(definitions.length > 0)
    assert.equal(new Set(definitions.map(({ name }) => name)).size, definitions.length)
  })

  for (const definition of definitions)
    it(`a manual statement has the declared parameters and columns: ${definition.name}`, async () => {
      assert.deepEqual(await describeStatement(definition.text), stated(definition))
    })

  it('a manual statement with a wrong type or column is detected', async () => {
    const { definition } = statement({
      name: 'wrong',
      parameters: ['text'],
      columns: { id: 'text', named: 'text' },
      text: 'SELECT id, name FROM workspace WHERE id = $1',
    })
    assert.deepEqual(await describeStatement(definition.text), {
      parameters: ['uuid'],
      columns: [
        ['id', 'uuid'],
        ['name', 'text'],
      ],
    })
    assert.notDeepEqual(await describeStatement(definition.text), stated(definition))
  })
})

interface Description {
  parameters: string[]
  columns: [name: string, type: string][]
}

const nameOf = (type: Type): string => (typeof type === 'string' ? type.replace('?', '') : type.type)

const stated = ({ parameters, columns }: AnyDefinition): Description => ({
  parameters: parameters.map(nameOf),
  columns: Object.entries(columns).map(([name, type]) => [name, nameOf(type)]),
})

/** Prepares a statement and reads PostgreSQL's description of it, without running it. */
async function describeStatement(text: string): Promise<Description> {
  const description = new Promise<{ parameters: number[]; fields: pg.FieldDef[] }>((resolve, reject) => {
    let parameters: number[] = []
    let fields: pg.FieldDef[] = []
    client.query({
      submit(connection: pg.Connection) {
        connection.once('parameterDescription', ({ dataTypeIDs }) => {
          parameters = dataTypeIDs
        })
        connection.parse({ name: '', text, types: [] }, true)
        connection.describe({ type: 'S', name: '' }, true)
        connection.sync()
      },
      handleRowDescription: (message: { fields: pg.FieldDef[] }) => {
        fields = message.fields
      },
      handleReadyForQuery: () => resolve({ parameters, fields }),
      handleError: reject,
    } as unknown as pg.Submittable)
  })
  const { parameters, fields } = await description
  const { rows } = await database.pool.query<{ oid: number; typname: string }>(
    'SELECT oid, typname FROM pg_type WHERE oid = ANY($1)',
    [[...parameters, ...fields.map(({ dataTypeID }) => dataTypeID)]],
  )
  // PostgreSQL derives the name of an array type from the type of its items.
  const names = new Map(rows.map(({ oid, typname }) => [oid, typname.replace(/^_(.*)/, '$1[]')]))
  return {
    parameters: parameters.map((oid) => names.get(oid) ?? ''),
    columns: fields.map(({ name, dataTypeID }) => [name, names.get(dataTypeID) ?? '']),
  }
}
