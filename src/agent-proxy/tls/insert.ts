/** Inserts the values of brokered secrets in place of their placeholders, only where a secret says. */
import type { BrokeredSecret } from '../policy/protocol.ts'

export interface RequestHead {
  /** Path and query. */
  target: string
  /** Names and values in turn. */
  headers: string[]
}

export function insertSecrets(head: RequestHead, secrets: readonly BrokeredSecret[]): RequestHead {
  return secrets.reduce(insertOne, head)
}

function insertOne({ target, headers }: RequestHead, secret: BrokeredSecret): RequestHead {
  const { via, placeholder, value } = secret
  if (via.as === 'query') return { target: inQuery(target, via.name, secret), headers }
  const name = via.as === 'header' ? via.name.toLowerCase() : 'authorization'
  const change = {
    bearer: (text: string) =>
      text.replace(/^(Bearer +)([^ ].*)$/is, (all, scheme, token) =>
        token === placeholder ? `${scheme}${value}` : all,
      ),
    basic: (text: string) => inBasic(text, secret),
    header: (text: string) => text.replaceAll(placeholder, () => value),
  }[via.as]
  const changed = headers.map((text, i) =>
    i % 2 === 1 && headers[i - 1]?.toLowerCase() === name ? change(text) : text,
  )
  return { target, headers: changed }
}

/** Replaces the user or the password. */
function inBasic(text: string, { placeholder, value }: BrokeredSecret): string {
  const [, scheme, encoded = ''] = /^(Basic +)([\w+/=-]+)$/i.exec(text) ?? []
  if (!scheme) return text
  const [, user = '', password] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  if (password === undefined || (user !== placeholder && password !== placeholder)) return text
  const [newUser, newPassword] = [user, password].map((part) => (part === placeholder ? value : part))
  return `${scheme}${Buffer.from(`${newUser}:${newPassword}`).toString('base64')}`
}

/** Replaces the value of a parameter; all other bytes of the target stay as they are. */
function inQuery(target: string, name: string, { placeholder, value }: BrokeredSecret): string {
  const [path = '', query] = split(target, '?')
  if (query === undefined) return target
  const parts = query.split('&').map((part) => {
    const [key = '', text] = split(part, '=')
    const isIt = decoded(key) === name && text !== undefined && decoded(text) === placeholder
    return isIt ? `${key}=${encodeURIComponent(value)}` : part
  })
  return `${path}?${parts.join('&')}`
}

function split(text: string, by: string): [string, string?] {
  const at = text.indexOf(by)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** Undefined if it is not URL-encoded UTF-8. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
