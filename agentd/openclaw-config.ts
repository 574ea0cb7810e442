import { unlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { makeFolders } from './folders.ts'
import { isObject, type Json } from './json.ts'
import { type Paths, realPath } from './paths.ts'
import { NotPlain, readPlainFile, replaceFile } from './plain-file.ts'
import { GATEWAY_MARK } from './protocol.ts'

/** The engine's own configs take kilobytes. */
const CONFIG_BYTES = 8_388_608
const JSON5_ERROR = /^JSON5: (.*) at (\d+):(\d+)$/s
/** In the engine's state while openclaw.json belongs to a spare. */
const SPARE_MARK = '.spare'
const KEYS_THAT_REACH_PROTOTYPES = ['__proto__', 'constructor', 'prototype']

/** openclaw.json is unusable, and only its owner can fix it. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/**
 * Brings openclaw.json up to date: `owned` replaces existing values, `defaults` fill missing ones. Everything else that
 * the agent's owner wrote stays. The file is replaced atomically, with mode 600, and only if something changes.
 *
 * @param options.owned, options.defaults with the paths of this machine, see {@link onThisMachine}.
 * @param options.engineDir contains the parser for JSON5, which the engine also accepts.
 * @param options.spare for a gateway without an owner: nothing of this config is left in the owner's.
 * @returns the paths of the values that differ from before; empty if the file was not replaced. @throws ConfigError
 */
export async function writeConfig(
  paths: Paths,
  options: { owned: Json; defaults: Json; engineDir: string; spare?: boolean },
): Promise<string[]> {
  const { owned, defaults, engineDir, spare = false } = options
  const mark = join(paths.state, SPARE_MARK)
  if (spare) await replaceFile(mark, '')
  const isSpares = (await readPlainFile(mark, 0).catch(() => undefined)) !== undefined
  const text = await readConfig(paths.configFile)
  const stored = text === undefined ? {} : parseConfig(text, engineDir)
  const before = isSpares ? {} : stored
  const after = override(fill(withoutGateway(before), defaults), owned)
  const changed = differences(stored, after)
  if (text === undefined || changed.length > 0) {
    await makeFolders(dirname(paths.configFile))
    await replaceConfig(paths.configFile, `${JSON.stringify(after, null, 2)}\n`)
  }
  if (isSpares && !spare) await unlink(mark)
  return changed
}

const isBranch = (value: unknown): value is Json | undefined => value === undefined || isObject(value)

/** The paths of values that differ, with dots between keys. */
function differences(before: Json, after: Json, path: string[] = []): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => {
    const here = [...path, key]
    const [there, then] = [before, after].map((of) => (Object.hasOwn(of, key) ? of[key] : undefined))
    if (isDeepStrictEqual(there, then)) return []
    const below = isBranch(there) && isBranch(then) ? differences(there ?? {}, then ?? {}, here) : []
    return below.length > 0 ? below : [here.join('.')]
  })
}

/** The keys that lead a provider to the model gateway. The rest of its entry belongs to the agent's owner. */
const GATEWAY_KEYS = ['baseUrl', 'apiKey', 'auth', 'api', 'timeoutSeconds', 'headers']

/**
 * Removes what an earlier start wrote to lead providers to the model gateway: their keys may be detached, and the
 * gateway's address may have changed. Models and headers that the owner added stay.
 */
export function withoutGateway(config: Json): Json {
  const { models } = config
  if (!isObject(models) || !isObject(models.providers)) return config
  const providers = { ...models.providers }
  for (const [id, provider] of Object.entries(providers)) {
    if (!isObject(provider) || !isObject(provider.headers) || !(GATEWAY_MARK in provider.headers)) continue
    const { [GATEWAY_MARK]: _mark, ...headers } = provider.headers
    const own = Object.entries(provider).filter(([key]) => !GATEWAY_KEYS.includes(key))
    if (Object.keys(headers).length > 0) own.push(['headers', headers])
    if (own.some(([, value]) => !Array.isArray(value) || value.length > 0))
      providers[id] = Object.fromEntries(own)
    else delete providers[id]
  }
  return { ...config, models: { ...models, providers } }
}

/** The settings file of the engine's main agent, below the engine's state. */
const SETTINGS_FILE = 'agents/main/agent/settings.json'
/** By default the engine retries a refused request nine times, for minutes, without a word to the client. */
const MAX_RETRIES = 0

/** Makes the engine pass a provider's refusal on at once, unless the agent's owner has set retries. @throws NotPlain */
export async function writeSettings({ state }: Paths): Promise<void> {
  const path = join(state, SETTINGS_FILE)
  const text = await readPlainFile(path, CONFIG_BYTES)
  const before = text === undefined ? {} : parseJson(text)
  // The engine cannot read it either: only its owner can repair it.
  if (!isObject(before)) return
  const after = fill(before, { retry: { provider: { maxRetries: MAX_RETRIES } } })
  const wanted = `${JSON.stringify(after, null, 2)}\n`
  if (JSON.stringify(before) === JSON.stringify(after)) return
  await makeFolders(dirname(path))
  await replaceFile(path, wanted)
}

/** `base` with each leaf of `owned` applied; a list is a leaf, and null removes the key (RFC 7396). */
export function override(base: Json, owned: Json): Json {
  const merged = { ...base }
  for (const [key, value] of Object.entries(owned)) {
    if (KEYS_THAT_REACH_PROTOTYPES.includes(key)) continue
    const there = merged[key]
    if (value === null) delete merged[key]
    else merged[key] = isObject(value) ? override(isObject(there) ? there : {}, value) : value
  }
  return merged
}

/** `base` without each leaf of `owned`, and without objects that are empty then. */
export function without(base: Json, owned: Json): Json {
  const rest = { ...base }
  for (const [key, value] of Object.entries(owned)) {
    const there = Object.hasOwn(rest, key) ? rest[key] : undefined
    const left = isObject(there) && isObject(value) ? without(there, value) : {}
    if (Object.keys(left).length > 0) rest[key] = left
    else delete rest[key]
  }
  return rest
}

/** `base`, completed with keys of `defaults` that it lacks. */
export function fill(base: Json, defaults: Json): Json {
  const merged = { ...base }
  for (const [key, value] of Object.entries(defaults)) {
    if (KEYS_THAT_REACH_PROTOTYPES.includes(key)) continue
    const there = Object.hasOwn(merged, key) ? merged[key] : undefined
    if (there === undefined) merged[key] = value
    else if (isObject(there) && isObject(value)) merged[key] = fill(there, value)
  }
  return merged
}

/** Replaces the API's paths, which the worker writes, with those of this machine, which the engine needs. */
export function onThisMachine<T>(paths: Paths, value: T): T {
  if (typeof value === 'string') return realPath(paths, value) as T
  if (Array.isArray(value)) return value.map((item) => onThisMachine(paths, item)) as T
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, onThisMachine(paths, item)]),
  ) as T
}

/** The text of openclaw.json, undefined if it does not exist. @throws ConfigError */
export function readConfig(path: string): Promise<string | undefined> {
  return readPlainFile(path, CONFIG_BYTES).catch(refuseOther)
}

/** Replaces openclaw.json. @throws ConfigError */
export const replaceConfig = (path: string, text: string): Promise<void> =>
  replaceFile(path, text).catch(refuseOther)

function refuseOther(error: unknown): never {
  throw error instanceof NotPlain ? new ConfigError(`openclaw.json: ${error.message}`) : error
}

/** Parses JSON, or JSON5 as the engine does. @throws ConfigError with the line and the column */
export function parseConfig(text: string, engineDir: string): Json {
  const value = parseJson(text) ?? parseJson5(text, engineDir)
  if (!isObject(value)) throw new ConfigError('openclaw.json is not a JSON object')
  return value
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function parseJson5(text: string, engineDir: string): unknown {
  try {
    const engine = createRequire(join(engineDir, 'node_modules', 'openclaw', 'package.json'))
    return engine('json5').parse(text)
  } catch (error) {
    const [, reason, line, column] = JSON5_ERROR.exec((error as Error).message) ?? []
    const where = reason ? `: ${reason} at line ${line}, column ${column}` : ''
    throw new ConfigError(`openclaw.json is not valid JSON${where}`)
  }
}
