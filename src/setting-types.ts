/** Types of setting values: the accepted format, and the parsed value. */
import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import { readBucket } from './lib/bucket-name.ts'
import { parseTrustedProxies } from './lib/net/trusted-proxies.ts'
import { parseRedisAddress, REDIS_ADDRESS } from './lib/redis-address.ts'
import './lib/zod-messages.ts'

const require = createRequire(import.meta.url)

export const text = z.string().trim()
export const flag = z
  .enum(['true', 'false', '1', '0'])
  .transform((value) => value === 'true' || value === '1')
export const list = text.transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
)
/** A list of `address/bits`. */
export const networks = list.refine(
  (items) =>
    items.every((item) => {
      const [address = '', bits = '', ...more] = item.split('/')
      const version = isIP(address)
      return (
        version > 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128) && !more.length
      )
    }),
  'must be networks like 192.0.2.0/24 or 2001:db8::/32, with commas between them',
)
/** A port, or `host:port`; the host defaults to loopback. */
export const address = text.transform((value, context) => {
  const [, host = '127.0.0.1', port = ''] = /^(?:([^:]+|\[.+\]):)?(\d{1,5})$/.exec(value) ?? []
  if (port && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  context.addIssue('must be a port, or host:port')
  return z.NEVER
})
/**
 * Values of one subject in one setting, as `name=value` with commas between them. Names that are left out keep their
 * defaults.
 * @param main the name of a value that is set without a name.
 */
export const group = <S extends z.ZodRawShape>(description: string, shape: S, main?: keyof S & string) =>
  list
    .transform((items, context) => {
      const pairs = items.map((item) => (main && /^\d+$/.test(item) ? [main, item] : item.split('=')))
      if (pairs.every(([name, value, more]) => name && value && more === undefined))
        return Object.fromEntries(pairs)
      context.addIssue(`must be like ${Object.keys(shape)[0]}=1, with commas between more of them`)
      return z.NEVER
    })
    .pipe(z.strictObject(shape))
    .prefault('')
    .describe(description)
/** An object, written as YAML or JSON. */
export const yaml = <S extends z.ZodType>(schema: S) =>
  text
    .transform((value, context) => {
      if (value === '') return {}
      // Loaded on first use, because most processes read no such setting.
      const { parse } = require('yaml') as typeof import('yaml')
      try {
        return parse(value) ?? {}
      } catch {
        context.addIssue('must be YAML or JSON')
        return z.NEVER
      }
    })
    .pipe(schema)
/** Copies: `min-max`, or one number. */
export const replication = text.transform((value, context) => {
  const [, min = '', max = min] = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(value) ?? []
  if (Number(min) >= 1 && Number(min) <= Number(max)) return { min: Number(min), max: Number(max) }
  context.addIssue('must be a number of copies, or a minimum and a maximum like 2-3')
  return z.NEVER
})
export const integer = (min: number, max: number) => z.coerce.number().int().min(min).max(max)
/** Seconds, including fractions. */
export const seconds = (min: number, max: number) => z.coerce.number().min(min).max(max)
export const url = (...protocols: string[]) =>
  text.refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol.slice(0, -1)), {
    message: `must be a URL with ${protocols.join(':// or ')}://`,
  })
/** A bucket of S3, and the prefix of the names in it. */
export const bucket = text.refine(
  (target) => readBucket(target) !== undefined,
  'must be like s3://bucket/prefix',
)
/** The IPFS node that Berth used before: a Kubo, or the embedded one in a folder or a bucket. */
export const previousNode = text.refine(
  (value) =>
    value === 'embedded' || [url('http', 'https'), bucket].some((type) => type.safeParse(value).success),
  'must be the RPC address of a Kubo, embedded, or s3://bucket/prefix',
)
/** One PostgreSQL. Its driver would look up several names as one. */
export const database = url('postgres', 'postgresql').refine(
  (value) => !/^[^/]*\/\/[^/]*,/.test(value),
  'must name one host: a proxy that leads to the primary of several',
)
/** One Redis, or the Sentinels of several. */
export const redis = text.refine((value) => parseRedisAddress(value) !== undefined, REDIS_ADDRESS)
/** An OpenID provider. Tokens over plain http could be forged, except on this machine. */
export const issuer = url('http', 'https').refine(
  (value) =>
    value.startsWith('https:') || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(value).hostname),
  'must be a URL with https://',
)
/** A list of `<domain>:<role>:<workspace>`. */
export const joinRules = list.transform((items, context) =>
  items.map((item) => {
    const [, domain, role, workspace] = /^([a-z\d.-]+):(member|viewer):(.+)$/i.exec(item) ?? []
    if (domain && role && workspace)
      return { domain: domain.toLowerCase(), role: role as JoinRole, workspace }
    context.addIssue('must be like example.com:member:default, with commas between them')
    return z.NEVER
  }),
)
type JoinRole = 'member' | 'viewer'
/** Maximum length of a Unix socket path, on any system that Berth supports. */
export const SOCKET_PATH_BYTES = 100
export const socketPath = text
  .transform((path) => resolve(path))
  // Linux allows 107 bytes, other systems 103; a longer path would be truncated silently.
  .refine((path) => Buffer.byteLength(path) <= SOCKET_PATH_BYTES, 'must be at most 100 bytes long')
export const proxies = text.transform((value, context) => {
  const parsed = parseTrustedProxies(value)
  if (parsed !== undefined) return parsed
  context.addIssue(
    'must be a number from 0 to 10, or addresses, networks and host names with commas between them',
  )
  return z.NEVER
})
