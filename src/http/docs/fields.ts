/** A JSON Schema as a list of fields. */
import { type Html, html, markdown } from './html.ts'

export interface Schema {
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  format?: string
  default?: unknown
  minimum?: number
  maximum?: number
  maxLength?: number
}

/**
 * Every field of `schema` with its type and meaning, including fields of objects and list items, by their paths:
 * `files[].id`.
 */
export function fieldList(schema: Schema, path = ''): Html[] {
  const object = holder(schema)
  return Object.entries(object?.properties ?? {}).flatMap(([name, field]) => {
    const { items } = holder(field) ?? {}
    return [
      html`
<div class="field">
  <code><i>${path}</i>${name}</code> <i>${typeName(field)}${!object?.required?.includes(name) && ', optional'}</i>
  ${field.description !== undefined && html`<small>${markdown(field.description)}</small>`}
</div>`,
      ...fieldList(items ?? field, `${path}${name}${items ? '[]' : ''}.`),
    ]
  })
}

/** The alternative with fields or items, if the schema also allows null. */
const holder = (schema: Schema): Schema | undefined =>
  schema.anyOf ? schema.anyOf.find(({ properties, items }) => properties ?? items) : schema

/** A readable type: `string, at most 255 characters`, `integer, 1 to 250`, `"ASC" | "DESC"`. */
export function typeName(schema: Schema): string {
  const { type, items, minimum, maximum, maxLength, format, default: preset } = schema
  if (schema.anyOf) return schema.anyOf.map(typeName).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (items) return `array of ${typeName(items)}`
  const name = type === 'object' && schema.additionalProperties?.type === 'string' ? 'map of strings' : type
  const bounds =
    maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : `, ${minimum ?? 0} to ${maximum}`
  return [
    format ?? [name ?? 'any'].flat().join(' | '),
    bounds,
    maxLength !== undefined && `, at most ${maxLength} characters`,
    preset !== undefined && `, ${preset} unless told`,
  ]
    .filter(Boolean)
    .join('')
}
