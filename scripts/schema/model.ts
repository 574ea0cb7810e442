/** `schema.prisma` as Prisma itself reads it. */
import { readFileSync } from 'node:fs'
import { get_dmmf } from '@prisma/prisma-schema-wasm'

export interface Model {
  name: string
  /** The table's name. */
  dbName: string
  documentation?: string
  fields: Field[]
  primaryKey: { fields: string[] } | null
}

export interface Field {
  name: string
  /** The column's name, if it differs. */
  dbName?: string
  kind: 'scalar' | 'object'
  type: string
  /** Its `@db` attribute, with arguments. */
  nativeType?: [name: string, args: string[]] | null
  isId: boolean
  isList: boolean
  isRequired: boolean
  documentation?: string
  /** The columns of the foreign key, on the side that has it. */
  relationFromFields?: string[]
}

/** All models except those that Prisma's client leaves out. */
export function readModels(): Model[] {
  const schema = readFileSync(new URL('../../prisma/schema.prisma', import.meta.url), 'utf8')
  const { datamodel } = JSON.parse(get_dmmf(JSON.stringify({ prismaSchema: [['schema.prisma', schema]] })))
  return datamodel.models
}
