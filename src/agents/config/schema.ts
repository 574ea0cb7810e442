import { z } from 'zod'
import { text } from '../../http/shapes.ts'

/** As much as a body may have. */
const MAX_CONFIG = 1_048_576

/** As text (what reading answers) or as an object (what the CLI sends): text of an object either way. */
const config = z
  .union(
    [
      text(MAX_CONFIG).refine(isObject, 'must be a JSON object'),
      z.record(z.string(), z.unknown()).transform((value) => JSON.stringify(value, null, 2)),
    ],
    'must be a JSON object, or its text',
  )
  .describe('The config: a JSON object, or its text.')

export const newConfig = z.object({ config })

/** Without a config: what is on disk. */
export const configToCheck = z
  .object({ config: config.optional() })
  .optional()
  .transform((body) => body ?? {})

export const configText = z.object({ config: z.string() })

export const written = z.object({ success: z.boolean(), message: z.string() })

export const check = z.object({ valid: z.boolean(), output: z.string().describe('What the engine said.') })

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
