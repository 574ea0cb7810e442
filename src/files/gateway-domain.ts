/** Names of gateways: one DNS label, to the left of `BERTH_GATEWAY_DOMAIN`. */
import type { Prisma } from '../db/prisma.ts'

/** RFC 1035; hyphens in the third and fourth place are for names in other scripts, which may look like other names. */
const LABEL = /^(?!..--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/
const BRAND = 'berth'
/** Host names that services use themselves. Migration 0004 has the same list. */
const RESERVED = new Set([
  'admin',
  'agents',
  'api',
  'app',
  'dashboard',
  'docs',
  'gateway',
  'ipfs',
  'ipns',
  'status',
  'uploads',
  'www',
])

/** Why a name cannot be a gateway's; undefined if it can. @param domain in lower case. */
export function domainFault(domain: string): string | undefined {
  if (!LABEL.test(domain)) return 'must be 3 to 63 letters, digits and hyphens, with no hyphen at an end'
  if (domain.includes(BRAND)) return `must not contain "${BRAND}"`
  if (RESERVED.has(domain)) return 'is reserved'
  return undefined
}

/** Characters of the longest label of DNS. */
export const LABEL_LENGTH = 63

/** A CID in the only spelling that a case-insensitive host name can have: version 1 in base32. */
const HOST = /^(?:(b[a-z2-7]+)\.ipfs\.)?([^.]+)$/

/** The gateway and the CID that a host below `BERTH_GATEWAY_DOMAIN` names. */
export interface GatewayHost {
  /** The gateway's name. */
  domain: string
  /** The CID at `<cid>.ipfs.<gateway's host>`; it may be invalid, and longer than a DNS label. */
  cid: string | undefined
}

/**
 * Reads the host of a gateway, or of a CID at a gateway.
 * @param host as in a Host header: with or without a port, in any case.
 * @param gatewayDomain `BERTH_GATEWAY_DOMAIN`.
 * @returns undefined for any other host.
 */
export function readGatewayHost(host: string, gatewayDomain: string): GatewayHost | undefined {
  const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  const suffix = `.${gatewayDomain}`
  const labels = name.endsWith(suffix) ? name.slice(0, -suffix.length) : ''
  const [, cid, domain = ''] = HOST.exec(labels) ?? []
  return LABEL.test(domain) ? { domain, cid } : undefined
}

/** Shorter than a label's limit: long enough for a name, and still looks like one. */
const MAX_NAME = 50

/**
 * Creates the gateway that every workspace has from the start, named after the workspace if the name is valid and free.
 * Migration 0004 does the same for earlier workspaces.
 * @param tx the transaction that creates the workspace.
 */
export async function createDefaultGateway(
  tx: Prisma.TransactionClient,
  workspace: { id: string; name: string },
): Promise<void> {
  const name = workspace.name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  const named = name.slice(0, MAX_NAME).replace(/^-|-$/g, '')
  const numbered = `gateway-${workspace.id.slice(-12)}`
  for (const domain of [named, numbered]) {
    if (domainFault(domain)) continue
    // A taken name is skipped: an error would end the transaction.
    const { count } = await tx.gateway.createMany({
      data: { workspaceId: workspace.id, domain },
      skipDuplicates: true,
    })
    if (count === 1) return
  }
  throw new Error(`no name is free for the gateway of workspace ${workspace.id}`)
}
