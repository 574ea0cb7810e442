/** Examples of bodies, composed of those that fields have on their schemas: `.meta({ examples: […] })`. */
import { z } from 'zod'
import { like } from '../fields.ts'

export interface JsonSchema {
  type?: string | string[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  enum?: unknown[]
  const?: unknown
  examples?: unknown[]
  [keyword: string]: unknown
}

/**
 * The example of a schema: its own, or one composed of those of its parts. An optional field without its own example is
 * left out. Without an example, a nullable schema is null, a number zero and a list empty.
 */
export function exampleOf(schema: JsonSchema): unknown {
  const { properties, required = [], oneOf = [], anyOf = oneOf, items, type } = schema
  if (schema.examples) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.format === 'binary') return '<bytes>'
  if (properties) {
    const isShown = ([name, { examples }]: [string, JsonSchema]) => examples || required.includes(name)
    const shown = Object.entries(properties).filter(isShown)
    const examples = shown.map(([name, field]) => [name, exampleOf(field)])
    return examples.some(([, example]) => example === undefined) ? undefined : Object.fromEntries(examples)
  }
  if (items) return [exampleOf(items)].filter((item) => item !== undefined)
  const option = anyOf.find((shape) => shape.examples ?? shape.properties ?? shape.items)
  const example = option && exampleOf(option)
  if (example !== undefined) return example
  if ([type, ...anyOf.map((shape) => shape.type)].flat().includes('null')) return null
  if (anyOf[0]) return exampleOf(anyOf[0])
  return { object: {}, boolean: false, number: 0, integer: 0 }[String(type)]
}

/** For a route's `success`: a stream of server-sent events, with one example for each kind of event. */
export const eventStream = (...events: [name: string, data: z.ZodType][]) => ({
  mediaType: 'text/event-stream',
  body: like(
    events
      .map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(exampleOfShape(data))}\n\n`)
      .join(''),
  ),
})

/** The same of a shape. */
export const exampleOfShape = (shape: z.ZodType): unknown =>
  exampleOf(z.toJSONSchema(shape, { unrepresentable: 'any' }) as JsonSchema)
