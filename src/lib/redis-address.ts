/** The value of REDIS_URL: one Redis server, or the Sentinels that know which server is the primary. */

/** The fields have ioredis' names. */
export type RedisAddress = { url: string } | SentinelAddress

interface SentinelAddress {
  sentinels: { host: string; port: number }[]
  /** The name of the primary in Sentinel's settings. */
  name: string
  username?: string
  password?: string
  db?: number
  sentinelUsername?: string
  sentinelPassword?: string
  /** TLS to the servers and to the Sentinels. */
  tls?: Record<string, never>
  sentinelTLS?: Record<string, never>
  enableTLSForSentinelMode?: true
}

/** The message for any other value. */
export const REDIS_ADDRESS =
  'must be a URL with redis:// or rediss://, or like redis+sentinel://:password@host1:26379,host2:26379/name'

const SENTINEL_PORT = 26_379
// A URL has one host, so the parser of URLs rejects this form.
const OF_SENTINELS = /^(rediss?)\+sentinel:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^/?#]+)(?:\?([^#]*))?$/
const HOST = /^(\[[\da-f:.]+\]|[^\s:[\]]+)(?::(\d{1,5}))?$/i

/** Parses an address; undefined for any other text. */
export function parseRedisAddress(value: string): RedisAddress | undefined {
  const parts = OF_SENTINELS.exec(value)
  if (!parts) return isUrl(value) ? { url: value } : undefined
  const [, scheme, login = '', hosts = '', name = '', query = ''] = parts
  const sentinels = hosts.split(',').map((item) => {
    const [, host = '', port = SENTINEL_PORT] = HOST.exec(item) ?? []
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  })
  if (sentinels.some(({ host, port }) => !host || port < 1 || port > 65_535)) return undefined
  const { db, sentinelUsername, sentinelPassword, ...unknown } = Object.fromEntries(
    new URLSearchParams(query),
  )
  if (Object.keys(unknown).length > 0 || (db !== undefined && !/^\d{1,4}$/.test(db))) return undefined
  const [username, ...password] = login.split(':')
  try {
    return {
      sentinels,
      name: decodeURIComponent(name),
      ...(username && { username: decodeURIComponent(username) }),
      ...(password.length > 0 && { password: decodeURIComponent(password.join(':')) }),
      ...(db && { db: Number(db) }),
      ...(sentinelUsername && { sentinelUsername }),
      ...(sentinelPassword && { sentinelPassword }),
      ...(scheme === 'rediss' && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    }
  } catch {
    // A percent sign that escapes nothing.
    return undefined
  }
}

const isUrl = (value: string) =>
  URL.canParse(value) && ['redis:', 'rediss:'].includes(new URL(value).protocol)
