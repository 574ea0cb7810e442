/** Proxies whose X-Forwarded-* headers are trusted: by number, addresses, or names. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../log.ts'

/** The number of proxies, or a list: addresses, networks, Express's names for networks, and host names. */
export type TrustedProxies = number | string[]

const MAX_PROXIES = 10
/** Names that Express supports. */
const NETWORKS = ['loopback', 'linklocal', 'uniquelocal']
/** In a container network, a name gets a new address when its container is recreated. */
const LOOKUP_MS = 5000
/** A host name has a letter in its last label; otherwise the text is a misspelled address. */
const HOST_NAME = /^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)*(?=[\d-]*[a-z])[a-z0-9]([a-z0-9-]*[a-z0-9])?$/i

/** Parses the setting; undefined if it is malformed. */
export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  if (/^\d+$/.test(text)) return Number(text) <= MAX_PROXIES ? Number(text) : undefined
  const entries = text.split(',').map((entry) => entry.trim())
  return entries.every((entry) => isAddress(entry) || HOST_NAME.test(entry)) ? entries : undefined
}

/** An address, a network in CIDR notation, or one of Express's names. */
function isAddress(entry: string): boolean {
  if (NETWORKS.includes(entry)) return true
  const [address = '', bits, ...rest] = entry.split('/')
  // Express does not accept zones.
  if (address.includes('%')) return false
  const most = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  return most > 0 && rest.length === 0 && (bits === undefined || isWithin(bits, most))
}

const isWithin = (bits: string, most: number) =>
  /^\d+$/.test(bits) && Number(bits) > 0 && Number(bits) <= most

/**
 * Makes an application trust these proxies. The addresses of host names are looked up now and every five seconds; a
 * name without an address is ignored.
 * @returns a function that ends the lookups.
 */
export function trustProxies(
  app: { set(name: 'trust proxy', value: number | string[]): unknown },
  proxies: TrustedProxies,
  log: Logger,
): () => void {
  const addresses = typeof proxies === 'number' ? [] : proxies.filter(isAddress)
  const names = typeof proxies === 'number' ? [] : proxies.filter((entry) => !isAddress(entry))
  app.set('trust proxy', typeof proxies === 'number' ? proxies : addresses)
  const stopped = new AbortController()
  if (names.length > 0) void follow(stopped.signal)
  return () => stopped.abort()

  async function follow(signal: AbortSignal): Promise<void> {
    let before = ''
    while (!signal.aborted) {
      const found = (await Promise.all(names.map(addressesOf))).flat().sort()
      if (`${found}` !== before) log.info({ proxies: [...addresses, ...found] }, 'trusted proxies')
      before = `${found}`
      app.set('trust proxy', [...addresses, ...found])
      await delay(LOOKUP_MS, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}

async function addressesOf(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true }).catch(() => [])
  return found.map(({ address }) => address).filter(isAddress)
}
