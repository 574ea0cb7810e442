/** Brokered secrets: the hosts that get the value, and how it travels to them. Sandboxes have a placeholder. */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { z } from 'zod'
import type { BrokeredSecret } from '../../agent-proxy/policy/protocol.ts'
import { badRequest } from '../../errors.ts'
import { like, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import { registeredDomain } from '../../lib/net/domain-owner.ts'
import { MODEL_PROVIDERS } from '../../model-providers.ts'
import { isOfGateway } from './readable.ts'

const MAX_HOSTS = 20
const MAX_NAME = 253
/** Values travel in heads of requests, and shorter ones could not be masked in responses. */
const VALUE = /^(?! )[\x20-\x7e]{8,8192}(?<! )$/
const HOST = /^(\*\.)?([\p{L}\p{M}\p{N}._-]+)$/u
const LABELS = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])$/
/** Headers that frame a message, belong to one connection or are rewritten by the proxy. */
const OTHER_HEADERS = new RegExp(
  `^(?:${[
    ...[
      'accept-encoding',
      'connection',
      'content-.*',
      'expect',
      'host',
      'http2-settings',
      'if-range',
      'keep-alive',
    ],
    ...['proxy-.*', 'range', 'sec-websocket-(?:accept|extensions|key|version)', 'te', 'trailer'],
    ...['transfer-encoding', 'upgrade', 'via'],
  ].join('|')})$`,
  'i',
)

const host = text(300)
  .meta({ format: 'secret-host' })
  .transform((given) => parseHost(given) ?? '')
  .refine(
    (host) => host !== '',
    'must be a host such as api.example.com, or *.example.com with a domain of its own',
  )

/** Empty or null for none. */
export const hosts = withExample(
  z
    .array(host)
    .max(MAX_HOSTS, `must have at most ${MAX_HOSTS} hosts`)
    .transform((hosts) => [...new Set(hosts)]),
  ['api.example.com'],
)
  .nullable()
  .optional()
  .describe(
    'The egress proxy sends the value to these hosts only, by HTTPS on port 443; programs in the agent have a ' +
      'placeholder. `*.example.com` stands for every name below it, and needs a domain that one owner has registered.',
  )

const header = like('X-Api-Key')
  .regex(/^[!#$%&'*+.^_`|~\w-]{1,100}$/, 'must be the name of a header')
  .refine(
    (name) => !OTHER_HEADERS.test(name),
    'must be a header that belongs to the request, not to its transport',
  )
const parameter = like('api_key').regex(/^[\w.~[\]-]{1,100}$/, 'must be the name of a query parameter')

export const via = withExample(
  z.discriminatedUnion(
    'as',
    [
      z.strictObject({ as: z.enum(['bearer', 'basic']) }),
      z.strictObject({ as: z.literal('header'), name: header }),
      z.strictObject({ as: z.literal('query'), name: parameter }),
    ],
    'must be bearer, basic, header or query',
  ),
  { as: 'header', name: 'X-Api-Key' },
).describe(
  'Where programs write the secret: as `Authorization: Bearer`, as user or password of `Authorization: Basic`, in the ' +
    'header `name`, or as the query parameter `name`. Bearer unless given.',
)
type Via = z.output<typeof via>

/** The columns of a brokered secret. */
export interface Brokering {
  hosts: string[]
  viaAs: string | null
  viaName: string | null
}
const UNBROKERED: Brokering = { hosts: [], viaAs: null, viaName: null }

export const toVia = ({ viaAs, viaName }: Brokering): Via | null =>
  viaAs === null ? null : ({ as: viaAs, ...(viaName !== null && { name: viaName }) } as BrokeredSecret['via'])

/**
 * The hosts of a secret after a request.
 * @param before undefined for a new secret.
 * @throws ApiError 400 if the secret cannot have hosts, or `via` comes without them.
 */
export function brokeringOf(
  secret: { name: string; type: string },
  change: { value: string; hosts?: string[] | null | undefined; via?: Via | undefined },
  before: Brokering = UNBROKERED,
): Brokering {
  const hosts = change.hosts === undefined ? before.hosts : (change.hosts ?? [])
  const via = change.via ?? toVia(before) ?? { as: 'bearer' }
  if (hosts.length === 0) {
    if (change.via) throw badRequest('via: needs hosts')
    return UNBROKERED
  }
  if (secret.type !== 'secret')
    throw badRequest('hosts: a variable cannot have hosts, because its value is shown')
  if (isOfGateway(secret))
    throw badRequest(`hosts: agents never get the value of ${secret.name}, the model gateway inserts it`)
  const provider = MODEL_PROVIDERS.find(({ baseUrl }) => hosts.includes(new URL(baseUrl).hostname))
  if (provider)
    throw badRequest(
      `hosts: ${new URL(provider.baseUrl).hostname} is reached through the model gateway, with the secret ${provider.secrets[0]}`,
    )
  if (!VALUE.test(change.value))
    throw badRequest(
      'value: must have 8 to 8192 printable ASCII characters, without a blank at either end, if the secret has hosts',
    )
  return { hosts, viaAs: via.as, viaName: 'name' in via ? via.name : null }
}

/** The host in the spelling of DNS; undefined if it is malformed, an address, or `*.` before a public suffix. */
function parseHost(given: string): string | undefined {
  const [, star = '', name = ''] = HOST.exec(given) ?? []
  const ascii = domainToASCII(name)
  if (ascii.length > MAX_NAME || !LABELS.test(ascii) || isIP(ascii)) return undefined
  if (star && !isOfOneOwner(ascii)) return undefined
  return star + ascii
}

/**
 * False for a public suffix (`github.io`), and if the names below are suffixes (`compute.amazonaws.com`): strangers
 * have names there.
 */
function isOfOneOwner(name: string): boolean {
  const own = registeredDomain(name)
  return own !== null && own === registeredDomain(`x.${name}`)
}
