/** Prisma's own reading of `schema.prisma` and of a database, from its WebAssembly builds: nothing is downloaded. */
import { readFile } from 'node:fs/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from '@prisma/driver-adapter-utils'
import { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'

const SCHEMA = new URL('../../prisma/schema.prisma', import.meta.url)

/**
 * The SQL that would turn the database's schema into `schema.prisma`; empty if they are the same.
 * @param schema the text of a `schema.prisma` other than the project's.
 */
export async function migrateDiff(databaseUrl: string, schema?: string): Promise<string> {
  const path = 'schema.prisma'
  const content = schema ?? (await readFile(SCHEMA, 'utf8'))
  const pool = new CatalogPool({ connectionString: databaseUrl, max: 2 })
  try {
    const engine = await SchemaEngine.new(
      { datamodels: [[path, content]] },
      () => {},
      bindMigrationAwareSqlAdapterFactory(new CatalogAdapterFactory(pool)),
    )
    const files = [{ path, content }]
    const { exitCode, stdout } = await engine.diff({
      from: { tag: 'schemaDatasource', files, configDir: '.' },
      to: { tag: 'schemaDatamodel', files },
      filters: { externalTables: ['public._prisma_migrations'], externalEnums: [] },
      script: true,
      exitCode: true,
    })
    return exitCode === 0 ? '' : (stdout ?? '')
  } finally {
    await pool.end()
  }
}

const CHAR = 18
const BPCHAR = 1042
/** Columns of type "char", which PostgreSQL's catalogue has and the adapter does not know. */
const charColumns = new Set<string>()

class CatalogPool extends pg.Pool {
  override async query(...args: any[]): Promise<any> {
    const result = await (super.query as (...args: unknown[]) => Promise<pg.QueryResult>)(...args)
    for (const field of result.fields) {
      if (field.dataTypeID !== CHAR) continue
      charColumns.add(field.name)
      field.dataTypeID = BPCHAR
    }
    return result
  }
}

class CatalogAdapterFactory extends PrismaPg {
  override async connect() {
    const adapter = await super.connect()
    const queryRaw = adapter.queryRaw.bind(adapter)
    adapter.queryRaw = async (query) => {
      const result = await queryRaw(query)
      const columnTypes = result.columnTypes.map((type, at) =>
        charColumns.has(result.columnNames[at] ?? '') ? ColumnTypeEnum.Character : type,
      )
      return { ...result, columnTypes }
    }
    return adapter
  }
}
