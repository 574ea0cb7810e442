import { z } from 'zod'
import type { Ownership } from '../../domains/ownership.ts'
import { like, uuid } from '../../http/fields.ts'

/** A custom domain of a gateway as clients see it. */
export const customDomainRecord = z.object({
  domain: like('files.example.com'),
  domain_validation_status: z
    .enum(['pending', 'active'])
    .describe('`active` once its TXT record was seen; from then on it serves the gateway.'),
  custom_domain_id: uuid,
  ssl_validation_status: z
    .enum(['initializing', 'active'])
    .describe('Same value: the TLS proxy manages certificates, and may get one for an active domain.'),
  txt_name: z
    .string()
    .nullable()
    .describe('Name of the TXT record that is still missing; null once the domain is active.'),
  txt_value: like('berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE')
    .nullable()
    .describe('Its value.'),
  cname_target: like('catalogues.gateway.localhost').describe('Target for a CNAME record of the domain.'),
})

/** The columns of a custom domain that are shown. */
export const DOMAIN_FIELDS = { id: true, customDomain: true, status: true, workspaceId: true } as const

export interface GatewayDomain {
  id: string
  customDomain: string | null
  status: string
  workspaceId: string
}

/** @param host the gateway's host, below BERTH_GATEWAY_DOMAIN. */
export function toDomainRecord(
  ownership: Ownership,
  host: string,
  { id, customDomain, status, workspaceId }: GatewayDomain,
): z.output<typeof customDomainRecord> {
  const domain = customDomain ?? ''
  const isActive = status === 'verified'
  const challenge = isActive ? undefined : ownership.challenge(workspaceId, domain)
  return {
    domain,
    domain_validation_status: isActive ? 'active' : 'pending',
    custom_domain_id: id,
    ssl_validation_status: isActive ? 'active' : 'initializing',
    txt_name: challenge?.name ?? null,
    txt_value: challenge?.value ?? null,
    cname_target: host,
  }
}
