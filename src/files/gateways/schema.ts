import { z } from 'zod'
import { domainFault } from './domain.ts'

/** The left label of a gateway's host; DNS knows no case. */
export const domain = z
  .string()
  .toLowerCase()
  .superRefine((value, context) => {
    const fault = domainFault(value)
    if (fault) context.addIssue(fault)
  })

export const accessToken = z.object({
  id: z.string(),
  value: z.string().describe('The token. It is shown this once: empty in every other answer.'),
  createdAt: z.string(),
})

/** A gateway in a list (compatibility 1.9). */
export const gatewayRow = z.object({
  id: z.string(),
  created_at: z.string(),
  domain: z.string().describe('The left label of its host.'),
  host: z.string().describe('Its host; scheme and port are those of the API.'),
  restrict: z.boolean().describe('Whether it has access tokens, and is read with one of them only.'),
  custom_domains: z.array(z.unknown()).describe('Always empty: Berth has no custom domains for gateways.'),
})

const restrictions = z.object({
  accessTokens: z.array(accessToken),
  allowedHosts: z.array(z.unknown()).describe('Always empty.'),
  allowedIPAddresses: z.array(z.unknown()).describe('Always empty.'),
})

export const gatewayRecord = gatewayRow.extend({
  settings: z.object({ restriction_policies: restrictions }),
})

export const installed = z.object({ gateway_id: z.string(), plugin_id: z.number() })

export const plugin = z.object({
  id: z.number(),
  name: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
})
