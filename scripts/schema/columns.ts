import { type Field, readModels } from './model.ts'

/** Prisma's types by their PostgreSQL names. */
const TYPES: Record<string, string> = {
  BigInt: 'int8',
  Boolean: 'bool',
  Bytes: 'bytea',
  DateTime: 'timestamptz',
  Int: 'int4',
  Json: 'jsonb',
  String: 'text',
}

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
  const named = nativeType?.[0] === 'Uuid' ? 'uuid' : TYPES[type]
  if (!named) throw new Error(`${name}: no name of PostgreSQL's for the type ${type}`)
  return `${named}${isList ? '[]' : ''}${isRequired ? '' : '?'}`
}
