/** The rules for path routes of an agent's own host. */

import { z } from 'zod'
import { AGENTD_PORT, GATEWAY_PORT } from '../../../agentd/protocol.ts'
import { like, withExample } from '../../http/fields.ts'

const MAX_ROUTES = 10
const MAX_PREFIX = 200
/** Paths that the host always handles itself. */
const RESERVED_PREFIXES = ['/v0', '/chat', '/config']
const RESERVED_PORTS: readonly number[] = [GATEWAY_PORT, AGENTD_PORT]

/** A port of an agent that may be exposed: neither a system port, nor one that Berth uses itself. */
export const agentPort = z
  .int('must be a whole number')
  .meta({ examples: [3000] })
  .min(1025, 'must be from 1025 to 65535')
  .max(65_535, 'must be from 1025 to 65535')
  .refine((port) => !RESERVED_PORTS.includes(port), 'is reserved')
  .describe(`From 1025 to 65535, except ${RESERVED_PORTS.join(' and ')}.`)

const SEGMENTS = /^\/(?:[\w-]+(?:\/[\w-]+)*)?$/

const pathPrefix = like('/')
  .max(MAX_PREFIX, `must have at most ${MAX_PREFIX} characters`)
  // `/app/` means the same as `/app`.
  .overwrite((prefix) => prefix.replace(/(?<=[\w-])\/$/, ''))
  .refine(
    (prefix) => SEGMENTS.test(prefix),
    'must begin with / and have only letters, digits, - and _ between slashes',
  )
  .refine((prefix) => !isReserved(prefix), `${RESERVED_PREFIXES.join(', ')} are reserved`)
  .meta({ format: 'path-prefix' })
  .describe('Whole segments of a path, such as `/app`; `/` matches everything.')

const isReserved = (prefix: string) =>
  RESERVED_PREFIXES.some((reserved) => prefix === reserved || prefix.startsWith(`${reserved}/`))

/** An absent `protected` means false: the command line omits false. */
const mapping = z.object({
  port: agentPort,
  pathPrefix,
  protected: z
    .boolean()
    .nullish()
    .transform((value) => value ?? false)
    .describe('Whether it requires the gateway token.'),
})

/** A path of an agent's own host that leads to one of its ports. */
export interface RouteMapping {
  port: number
  pathPrefix: string
  protected: boolean
}

const mappings = z
  .array(mapping)
  .max(MAX_ROUTES, `must have at most ${MAX_ROUTES} items`)
  .superRefine((items, context) => {
    const first = new Map<string, number>()
    for (const [index, { pathPrefix }] of items.entries()) {
      const before = first.get(pathPrefix)
      if (before === undefined) first.set(pathPrefix, index)
      else {
        const message = `is the same as in mappings[${before}]`
        context.addIssue({ code: 'custom', path: [index, 'pathPrefix'], message })
      }
    }
  })

/** The body of `PUT A/port-forwarding`. The Go CLI sends null to remove all routes. */
export const newMappings = z.object({ mappings: mappings.nullable().transform((given) => given ?? []) })

const mappingRecord = z.object({
  port: withExample(z.int(), 3000),
  pathPrefix: like('/'),
  protected: z.boolean(),
})
export const mappingList = z.object({ mappings: z.array(mappingRecord) })
