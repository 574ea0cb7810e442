/**
 * Proves that a workspace owns a domain: a TXT record that only the zone's owner can set (contract 3). Its value
 * depends only on the workspace and the name, so it can be known and set before the domain is added. It need not be a
 * secret: only the zone's owner can set it, and it is valid for no other workspace.
 */
import { createHash } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import type { Config } from '../config.ts'
import { ConfigError } from '../errors.ts'

const PREFIX = '_service-verify.'
/** Timeout of one DNS query to one server. All queries together take at most {@link CHECK_MS}. */
const TIMEOUT_MS = 2000
const TRIES = 2
const CHECK_MS = 5000
/** DNS codes that mean that the record does not exist; other failures say nothing about it. */
const ABSENT = ['ENOTFOUND', 'ENODATA']

/** No DNS server reported whether the record exists. */
export class DnsAwayError extends Error {
  override name = 'DnsAwayError'
}

/** The TXT record to set. */
export interface Challenge {
  name: string
  value: string
}

export class Ownership {
  readonly #server: string | undefined

  /** @throws ConfigError if the DNS server is invalid. */
  constructor({ BERTH_DNS_SERVER }: Pick<Config, 'BERTH_DNS_SERVER'>) {
    this.#server = BERTH_DNS_SERVER
    try {
      this.#resolver()
    } catch {
      throw new ConfigError('BERTH_DNS_SERVER: must be an IP address, with a port if it is not 53')
    }
  }

  /** The record with which a workspace proves that it owns a domain. */
  challenge(workspaceId: string, domain: string): Challenge {
    const mark = createHash('sha256').update(`domain ownership\0${workspaceId}\0${domain}`)
    return { name: `${PREFIX}${domain}`, value: `berth-verify=${mark.digest('base64url')}` }
  }

  /** True if the domain's TXT record exists now. @throws DnsAwayError if no DNS server can tell within five seconds. */
  async isProven(workspaceId: string, domain: string): Promise<boolean> {
    const { name, value } = this.challenge(workspaceId, domain)
    const resolver = this.#resolver()
    const late = setTimeout(() => resolver.cancel(), CHECK_MS)
    try {
      const records = await resolver.resolveTxt(name)
      return records.some((strings) => strings.join('').trim() === value)
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      if (ABSENT.includes(code)) return false
      throw new DnsAwayError(`DNS did not answer: ${message}`, { cause: error })
    } finally {
      clearTimeout(late)
    }
  }

  /** A resolver for a single lookup: cancelling ends all lookups of a resolver. */
  #resolver(): Resolver {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
    if (this.#server) resolver.setServers([this.#server])
    return resolver
  }
}
