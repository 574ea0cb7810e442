/** Parses the config, and reads and writes values at paths in it. */
import { texts } from '../../../texts.ts'

export type Json = Record<string, unknown>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object, or the reason why the text is not one. */
export function parse(text: string): { value?: Json; error?: string } {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { value } : { error: texts.config.noObject }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

export const read = (from: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), from)

/** A copy with `value` at the path; undefined removes the key. */
export function write(from: Json, [key = '', ...rest]: readonly string[], value: unknown): Json {
  const there = from[key]
  const next = rest.length > 0 ? write(isObject(there) ? there : {}, rest, value) : value
  if (next !== undefined) return { ...from, [key]: next }
  const { [key]: _, ...others } = from
  return others
}

/** Models that the config names, as `provider/model`. */
export function modelsOf(config: Json): string[] {
  const providers = read(config, ['models', 'providers'])
  const ofProviders = isObject(providers)
    ? Object.entries(providers).flatMap(([provider, about]) => {
        const models = read(about, ['models'])
        return Array.isArray(models)
          ? models.map((model) => `${provider}/${String(read(model, ['id']))}`)
          : []
      })
    : []
  const named = read(config, ['agents', 'defaults', 'models'])
  return [...new Set([...ofProviders, ...(isObject(named) ? Object.keys(named) : [])])].sort()
}
