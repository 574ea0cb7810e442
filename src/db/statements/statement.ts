/**
 * A hand-written statement with the types of its parameters and rows, in PostgreSQL's names. TypeScript uses these
 * types. `test/integration/db/statements.alone.test.ts` has a migrated database describe each statement and compares the
 * types, so they cannot be wrong. PostgreSQL does not report whether a column may be null; a `?` marks those.
 */
import { type Queryable, queryOne, type Result } from '../pool.ts'

/** Values as `pg` accepts and returns them. */
interface Types {
  bool: boolean
  'bool[]': boolean[]
  float8: number
  int4: number
  'int4[]': number[]
  /** Passed as a number; no statement reads one, because `pg` returns a string. */
  int8: number
  text: string
  'text[]': string[]
  timestamptz: Date
  uuid: string
  'uuid[]': string[]
}

type TypeName = keyof Types

/** A PostgreSQL type whose values are narrower than TypeScript can know; see {@link narrow}. */
interface Narrowed<T> {
  type: string
  /** The value never exists: the field only carries the type. */
  value?: T
}

export type Type = TypeName | `${TypeName}?` | Narrowed<unknown>

type Value<T extends Type> =
  T extends Narrowed<infer V>
    ? V
    : T extends TypeName
      ? Types[T]
      : T extends `${infer Name extends TypeName}?`
        ? Types[Name] | null
        : never

type Values<Parameters extends readonly Type[]> = { [At in keyof Parameters]: Value<Parameters[At]> }
export type Row<Columns extends Record<string, Type>> = { [Name in keyof Columns]: Value<Columns[Name]> }

/** The column of a field in `schema.prisma` that has no explicit name. */
export const columnOf = (field: string): string =>
  field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * A timestamp column as ISO 8601 text with microseconds, which a JavaScript `Date` would truncate; an SQL expression.
 */
export const isoTime = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** The same with milliseconds. */
export const isoMillis = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** A column of `type` whose values are of type `T`: a text with few possible values, or JSON. */
export const narrow = <T>(type: string): Narrowed<T> => ({ type })

export interface Definition<Parameters extends readonly Type[], Columns extends Record<string, Type>> {
  /** Name under which the statement is prepared, once per connection. */
  name: string
  text: string
  parameters: Parameters
  columns: Columns
}

/** A {@link Definition} that can be executed. */
export function statement<
  const Parameters extends readonly Type[],
  const Columns extends Record<string, Type>,
>(definition: Definition<Parameters, Columns>) {
  const { name, text } = definition
  const run = (db: Queryable, ...values: Values<Parameters>): Promise<Result<Row<Columns>>> =>
    db.query(statementOf(values))
  return {
    definition,
    run,
    /** The first row, if there is one. */
    first: async (db: Queryable, ...values: Values<Parameters>): Promise<Row<Columns> | undefined> =>
      (await run(db, ...values)).rows[0],
    /** The only row of a statement that always returns one row. */
    one: (db: Queryable, ...values: Values<Parameters>): Promise<Row<Columns>> =>
      queryOne(db, statementOf(values)),
  }

  function statementOf(values: readonly unknown[]) {
    return { name, text, values }
  }
}

/** Escapes text for a LIKE pattern, so that it matches only itself; Prisma's `contains` does not do this. */
export const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
