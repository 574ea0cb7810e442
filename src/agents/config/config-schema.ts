import JSON5 from 'json5'
import { z } from 'zod'
import { like } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import { parseJson } from '../../lib/read.ts'

/** Maximum body size, in bytes. */
const MAX_CONFIG = 1_048_576
/** Maximum number of characters for a config in JSON5. */
const MAX_JSON5 = 65_536
const JSON5_ERROR = /^JSON5: (.*) at (\d+):(\d+)$/s
/**
 * Maximum nesting of objects and arrays; the engine's own configs are ten levels deep. Deeper ones could fill the
 * memory when indented.
 */
const MAX_DEPTH = 32

const NO_CONFIG = `must be a JSON object at most ${MAX_DEPTH} deep, or its text`

const EXAMPLE = '{ "agents": { "defaults": { "model": { "primary": "berth/default" } } } }'

/**
 * The config as text (as reading returns it) or as an object (as the CLI sends it): the JSON of an object either way.
 */
const config = z
  .union([text(MAX_CONFIG).meta({ format: 'json-object' }), z.record(z.string(), z.unknown())], NO_CONFIG)
  .meta({ examples: [EXAMPLE] })
  .transform((given, context) => {
    try {
      const { value, json } = typeof given === 'string' ? readText(given) : { value: given, json: undefined }
      if (isConfig(value)) return json ?? JSON.stringify(value, null, 2)
      context.addIssue(NO_CONFIG)
    } catch (error) {
      context.addIssue(`not valid JSON: ${(error as Error).message}`)
    }
    return z.NEVER
  })
  .pipe(text(MAX_CONFIG))
  .describe('The config: a JSON object, or its text, which may be JSON5.')

/**
 * Parses JSON, or JSON5 as the engine does.
 * @returns `json` is undefined for JSON5.
 * @throws Error with the line and the column.
 */
function readText(given: string): { value: unknown; json: string | undefined } {
  const value = parseJson(given)
  if (value !== undefined) return { value, json: given }
  // The JSON5 parser takes 2 s per megabyte.
  if (given.length > MAX_JSON5) throw new Error(`with more than ${MAX_JSON5} characters it cannot be JSON5`)
  try {
    return { value: JSON5.parse(given), json: undefined }
  } catch (error) {
    const [, reason, line, column] = JSON5_ERROR.exec((error as Error).message) ?? []
    throw new Error(reason ? `${reason} at line ${line}, column ${column}` : (error as Error).message)
  }
}

export const newConfig = z.object({ config })

/** Without a config, the current one is checked. */
export const configToCheck = z
  .object({ config: config.optional() })
  .optional()
  .transform((body) => body ?? {})

export const configText = z.object({
  config: like(EXAMPLE),
})

export const operatorKeys = z.object({
  keys: z
    .array(z.string())
    .describe('Paths of keys, such as `gateway.mode`. Empty until the gateway has started once.'),
})

const MAX_PATH = 1000

export const schemaQuery = z.object({
  path: text(MAX_PATH)
    .optional()
    .describe(
      'Keys joined by dots, such as `agents.defaults`; `*` matches any key. The whole config by default.',
    ),
})

/** The engine's English texts for a key. */
const described = {
  label: z.string().optional(),
  help: z.string().optional(),
  sensitive: z.boolean().optional().describe('True if the value is a secret.'),
}

/** The part of the engine's schema at one path, under Berth's field names. */
export const schemaPart = z.object({
  path: like('agents.defaults.heartbeat'),
  schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the value, without the keys below it.'),
  ...described,
  children: z
    .array(
      z.object({
        key: like('every').describe('`*` stands for any key, or any position in a list.'),
        path: like('agents.defaults.heartbeat'),
        type: z.union([z.string(), z.array(z.string())]).optional(),
        required: z.boolean(),
        hasChildren: z.boolean(),
        ...described,
      }),
    )
    .describe('The keys below it.'),
})

/** The same in the engine's format, which keeps hints separate. */
const hint = z.object(described).optional()
const { children, label: _label, help: _help, sensitive: _sensitive, ...place } = schemaPart.shape
export const engineSchemaPart = z
  .object({
    ...place,
    hint,
    children: z.array(children.element.omit({ label: true, help: true, sensitive: true }).extend({ hint })),
  })
  .transform(({ hint, children, ...part }) => ({
    ...part,
    ...hint,
    children: children.map(({ hint, ...child }) => ({ ...child, ...hint })),
  }))

export const written = z.object({ success: like(true), message: like('Config written') })

export const check = z.object({ valid: like(true), output: like('').describe('The engine’s output.') })

function isConfig(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && isShallow(value, MAX_DEPTH)
}

function isShallow(value: unknown, depth: number): boolean {
  // JSON cannot express JSON5's Infinity and NaN.
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((part) => isShallow(part, depth - 1))
}
