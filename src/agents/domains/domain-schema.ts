import { z } from 'zod'
import { agentId, like, timestamp, userId, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import { agentPort } from '../ports/port-route-schema.ts'

export const MAX_DOMAINS = 5
/** Limit on a workspace's subdomains without an agent, so that nobody can hoard names by giving them up. */
export const MAX_FORMER_SUBDOMAINS = 100

const domainName = withExample(text(1000), 'shop.example.com').meta({ format: 'domain-name' })
const isProtected = z.boolean().describe('Whether it requires the gateway token.')

/** `POST A/domains` (contract 4.3). An absent `protected` means false: the command line omits false. */
export const newDomain = z
  .object({
    subdomain: text(1000)
      .meta({ format: 'subdomain' })
      .nullish()
      .describe('One label: the name below the operator’s domain.'),
    customDomain: withExample(domainName.nullish(), 'shop.example.com').describe(
      'Your own domain, such as `shop.example.com`.',
    ),
    targetPort: agentPort,
    protected: isProtected.nullish().transform((value) => value ?? false),
  })
  .meta({
    oneOf: ['subdomain', 'customDomain'].map((name) => ({
      type: 'object',
      required: [name],
      properties: { [name]: { type: 'string' } },
    })),
  })
export type NewDomain = z.output<typeof newDomain>

/** `PUT A/domains/{domainId}`: the name cannot change. */
export const domainChange = z.object({
  subdomain: z.undefined('cannot be changed: delete the domain and add another').optional(),
  customDomain: z.undefined('cannot be changed: delete the domain and add another').optional(),
  targetPort: agentPort.optional(),
  protected: isProtected.optional(),
})
export type DomainChange = Pick<z.output<typeof domainChange>, 'targetPort' | 'protected'>

/** `POST A/domains/challenge`. */
export const challengeBody = z.object({ customDomain: domainName })

const txtName = like('_service-verify.shop.example.com').describe('Name of the TXT record to set.')
const txtValue = like('berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s').describe('Its value.')
const cnameTarget = like('x7f3k2ab.apps.example').describe('The target for a CNAME record of the domain.')

export const challengeRecord = z.object({
  success: z.literal(true),
  customDomain: like('shop.example.com'),
  type: z.literal('TXT'),
  name: txtName,
  value: txtValue,
  cnameTarget,
})

/** A domain as clients see it. Times are ISO 8601 with milliseconds, UTC. */
export const domainRecord = z.object({
  id: withExample(z.uuid(), '0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2'),
  agentId,
  userId,
  subdomain: z.string().nullable(),
  customDomain: like('shop.example.com').nullable(),
  targetPort: withExample(z.int(), 3000),
  protected: z.boolean(),
  status: z.enum(['pending_ownership', 'verified']),
  url: like('https://shop.example.com').describe('Its address once it is verified.'),
  cnameTarget: cnameTarget.nullable(),
  txtName: txtName
    .nullable()
    .describe('The TXT record that Berth still has to see; null once it is verified.'),
  txtValue: txtValue.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
})
export type DomainRecord = z.output<typeof domainRecord>

export const oneDomain = z.object({ success: z.literal(true), domain: domainRecord })
export const verification = oneDomain.extend({
  verified: like(true),
  message: like('The domain is verified').describe('What is left to do if it is not verified.'),
})
