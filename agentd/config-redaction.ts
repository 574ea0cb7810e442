import { AgentdError } from './agentd-errors.ts'
import { isObject } from './json.ts'

/** The placeholder for a secret, here and in the engine. */
export const REDACTED = '__OPENCLAW_REDACTED__'
/**
 * Suffixes of names whose text is a secret: `apiKey`, `bot_token`, `x-api-key`; not `tokenFile`, not `maxTokens` (a
 * number).
 */
const SECRET_NAME =
  /(token|secret|passw(or)?d|passphrase|credential|authorization|cookie|serviceaccount|(api|access|secret|private|encrypt|encryption|signing|aes)key)s?$/
/** Keys whose children are named by the owner and mostly hold credentials; the engine hides them as well. */
const SECRET_PARENTS = ['env', 'headers']
/** `https://user:password@host` */
const URL_WITH_PASSWORD = /:\/\/[^\s/:@]*:[^\s/@]+@/
/** `${NAME}` refers to a variable of the environment, and reveals nothing. */
const REFERENCE = /^\$\{\w+\}$/
const DEPTH = 64

/**
 * A configuration with each secret replaced by {@link REDACTED}.
 * @param isSecret recognises known secret values anywhere.
 */
export function redact(value: unknown, isSecret: (text: string) => boolean, path: string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => redact(item, isSecret, path))
  if (isObject(value))
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, redact(item, isSecret, [...path, key])]),
    )
  if (typeof value !== 'string' || value === '' || REFERENCE.test(value)) return value
  return isNamedSecret(path) || URL_WITH_PASSWORD.test(value) || isSecret(value) ? REDACTED : value
}

/** A name with its text, in JSON5 or broken JSON5. It takes linear time, because the agent wrote the text. */
const MEMBER = /(?<![\w-])([\w-]{1,100})(["']?\s*:\s*)("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)/g

/** The text of a configuration that cannot be parsed, without values whose own names mark them as secret. */
export function redactText(text: string): string {
  return text.replace(MEMBER, (member, name, between) =>
    isNamedSecret([name]) ? `${name}${between}"${REDACTED}"` : member,
  )
}

/** The texts of a configuration that are secret by their position. */
export function secretsOf(value: unknown, path: string[] = []): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => secretsOf(item, path))
  if (isObject(value)) return Object.entries(value).flatMap(([key, item]) => secretsOf(item, [...path, key]))
  return typeof value === 'string' && !REFERENCE.test(value) && isNamedSecret(path) ? [value] : []
}

function isNamedSecret(path: string[]): boolean {
  const name = (path.at(-1) ?? '').toLowerCase().replace(/[^a-z]/g, '')
  return SECRET_NAME.test(name) || path.slice(0, -1).some((parent) => SECRET_PARENTS.includes(parent))
}

/**
 * A configuration with each {@link REDACTED} replaced by the stored value at its position.
 * @throws AgentdError bad_request, which names a key without a stored value.
 */
export function restore(value: unknown, stored: unknown, path: string[] = []): unknown {
  if (path.length > DEPTH) throw new AgentdError('bad_request', `nested deeper than ${DEPTH}`)
  if (value === REDACTED) {
    if (typeof stored === 'string' && !stored.includes(REDACTED)) return stored
    throw new AgentdError('bad_request', `${path.join('.')}: there is no stored value to keep`)
  }
  if (typeof value === 'string' && value.includes(REDACTED))
    throw new AgentdError('bad_request', `${path.join('.')}: a redacted value cannot be part of another`)
  if (Array.isArray(value))
    return value.map((item, i) => restore(item, counterpart(item, i, value, stored), [...path, String(i)]))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key.includes(REDACTED)) throw new AgentdError('bad_request', `${path.join('.')}: a redacted name`)
      const there = isObject(stored) && Object.hasOwn(stored, key) ? stored[key] : undefined
      return [key, restore(item, there, [...path, key])]
    }),
  )
}

/**
 * The stored value of a list item: the item with its id, or the item at its position if the lists have the same length.
 */
function counterpart(item: unknown, index: number, list: unknown[], stored: unknown): unknown {
  if (!Array.isArray(stored)) return undefined
  const id = idOf(item)
  if (id === undefined) return list.length === stored.length ? stored[index] : undefined
  const same = stored.filter((other) => idOf(other) === id)
  return same.length === 1 ? same[0] : undefined
}

function idOf(item: unknown): string | undefined {
  const id = isObject(item) ? (item.id ?? item.name) : undefined
  return typeof id === 'string' ? id : undefined
}
