import { z } from 'zod'
import { text } from '../../http/shapes.ts'
import { parseJson } from '../../lib/read.ts'

/** The bound on bodies, in bytes. */
const MAX_CONFIG = 1_048_576
/** Objects and arrays within each other; the engine's own go ten deep. Indented, deeper ones could fill the memory. */
const MAX_DEPTH = 32

/** The config as text (what reading answers) or as an object (what the CLI sends): text of an object either way. */
const config = z
  .union(
    [
      text(MAX_CONFIG)
        .refine((json) => isConfig(parseJson(json)))
        .meta({ format: 'json-object' }),
      z
        .record(z.string(), z.unknown())
        .refine(isConfig)
        .transform((value) => JSON.stringify(value, null, 2))
        .pipe(text(MAX_CONFIG)),
    ],
    `must be a JSON object at most ${MAX_DEPTH} deep, or its text`,
  )
  .describe('The config: a JSON object, or its text.')

export const newConfig = z.object({ config })

/** Without a config, the one on disk is checked. */
export const configToCheck = z
  .object({ config: config.optional() })
  .optional()
  .transform((body) => body ?? {})

export const configText = z.object({ config: z.string() })

export const operatorKeys = z.object({
  keys: z
    .array(z.string())
    .describe('Paths of keys, such as `gateway.mode`. Empty until the gateway was started once.'),
})

const MAX_PATH = 1000

export const schemaQuery = z.object({
  path: text(MAX_PATH)
    .optional()
    .describe(
      'Keys with dots between them, such as `agents.defaults`; `*` is any key. All of the config unless given.',
    ),
})

/** The engine has words for a key, in English. */
const described = {
  label: z.string().optional(),
  help: z.string().optional(),
  sensitive: z.boolean().optional().describe('The value is a secret.'),
}

/** The part of the engine's schema at one path, under Berth's field names. */
export const schemaPart = z.object({
  path: z.string(),
  schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the value, without the keys below it.'),
  ...described,
  children: z
    .array(
      z.object({
        key: z.string().describe('`*` stands for any key, or for any place of a list.'),
        path: z.string(),
        type: z.union([z.string(), z.array(z.string())]).optional(),
        required: z.boolean(),
        hasChildren: z.boolean(),
        ...described,
      }),
    )
    .describe('The keys below it.'),
})

/** The same as the engine answers it: its hints are apart. */
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

export const written = z.object({ success: z.boolean(), message: z.string() })

export const check = z.object({ valid: z.boolean(), output: z.string().describe('What the engine said.') })

function isConfig(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && isShallow(value, MAX_DEPTH)
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((part) => isShallow(part, depth - 1))
}
