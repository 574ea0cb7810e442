import { type Field, readModels } from './model.ts'

/** Prisma's types by their PostgreSQL names. */
const TYPES: Record<string, string> = {
  BigInt: 'int8',
  Boolean: 'bool',
  Bytes: 'bytea',
  DateTime: 'timestamptz',
  Decimal: 'numeric',
  Int: 'int4',
  Json: 'jsonb',
  String: 'text',
}

/** Prisma's native types that differ from {@link TYPES}. */
const NATIVE: Record<string, string> = { Date: 'date', Uuid: 'uuid' }

/**
 * The module of all columns of `schema.prisma`: a constant for each table, with types as manual statements name them.
 */
export function columnsModule(): string {
  const tables = readModels().map(({ name, fields }) => {
    const columns = fields.filter(({ kind }) => kind === 'scalar')
    const lines = columns.map((field) => `  ${field.name}: '${typeOf(field)}',\n`)
    return `\nexport const ${name} = {\n${lines.join('')}} as const\n`
  })
  return `/* Made from prisma/schema.prisma by \`npm run generate\`. */\n${tables.join('')}`
}

function typeOf({ name, type, nativeType, isList, isRequired }: Field): string {
  const named = NATIVE[nativeType?.[0] ?? ''] ?? TYPES[type]
  if (!named) throw new Error(`${name}: no name of PostgreSQL's for the type ${type}`)
  return `${named}${isList ? '[]' : ''}${isRequired ? '' : '?'}`
}
