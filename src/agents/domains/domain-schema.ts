import { z } from 'zod'
import { text } from '../../http/shapes.ts'
import { agentPort } from '../ports/port-route-schema.ts'

export const MAX_DOMAINS = 5
/** Limit on a workspace's subdomains without an agent, so that nobody can hoard names by giving them up. */
export const MAX_FORMER_SUBDOMAINS = 100

const domainName = text(1000).meta({ format: 'domain-name' })
const isProtected = z.boolean().describe('Whether it requires the gateway token.')

/** `POST A/domains` (contract 4.3). An absent `protected` means false: the command line omits false. */
export const newDomain = z
  .object({
    subdomain: text(1000)
      .meta({ format: 'subdomain' })
      .nullish()
      .describe('One label: the name below the operator’s domain.'),
    customDomain: domainName.nullish().describe('Your own domain, such as `shop.example.com`.'),
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

const txtName = z.string().describe('Name of the TXT record to set.')
const txtValue = z.string().describe('Its value.')
const cnameTarget = z.string().describe('The target for a CNAME record of the domain.')

export const challengeRecord = z.object({
  success: z.literal(true),
  customDomain: z.string(),
  type: z.literal('TXT'),
  name: txtName,
  value: txtValue,
  cnameTarget,
})

/** A domain as clients see it. Times are ISO 8601 with milliseconds, UTC. */
export const domainRecord = z.object({
  id: z.uuid(),
  agentId: z.string(),
  userId: z.string(),
  subdomain: z.string().nullable(),
  customDomain: z.string().nullable(),
  targetPort: z.int(),
  protected: z.boolean(),
  status: z.enum(['pending_ownership', 'verified']),
  url: z.string().describe('Its address once it is verified.'),
  cnameTarget: cnameTarget.nullable(),
  txtName: txtName
    .nullable()
    .describe('The TXT record that Berth still has to see; null once it is verified.'),
  txtValue: txtValue.nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type DomainRecord = z.output<typeof domainRecord>

export const oneDomain = z.object({ success: z.literal(true), domain: domainRecord })
export const verification = oneDomain.extend({
  verified: z.boolean(),
  message: z.string().describe('What is left to do if it is not verified.'),
})
