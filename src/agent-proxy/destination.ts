/** The destination that a client of the egress proxy asks for: host and port, parsed once into one spelling. */
import { ConfigError } from '../errors.ts'
import { HOST_MACHINE } from '../lib/net/host-machine.ts'

/** Length of the longest DNS name, including the trailing dot (RFC 1035, 2.3.4). */
const NAME_CHARACTERS = 254

export interface Destination {
  /** A name in lower case, or an IP address without brackets. */
  host: string
  port: number
}

/**
 * Parses `host:port` or `[IPv6]:port`. Every spelling of an IPv4 address that resolvers accept (`0x7f.1`, `2130706433`)
 * becomes the dotted one, so that the text check and the resolver cannot disagree. The name that containers use for
 * this machine becomes its loopback address.
 * @param defaultPort for texts without a port; if undefined, such texts are malformed.
 * @returns undefined if the text is malformed, which includes user information, a path and port 0.
 */
export function parseDestination(text: string, defaultPort?: number): Destination | undefined {
  const [, name = '', digits] = /^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i.exec(text) ?? []
  const port = digits === undefined ? defaultPort : Number(digits)
  // Bounded because each label of a name is compared with every allowed host.
  if (name.length > NAME_CHARACTERS) return undefined
  if (!name || !port || port > 65535 || !URL.canParse(`http://${name}`)) return undefined
  const { hostname } = new URL(`http://${name}`)
  return { host: hostname === HOST_MACHINE ? '127.0.0.1' : hostname.replace(/^\[|\]$/g, ''), port }
}

/** The destination as written in a `Host` header and in logs. */
export function formatDestination({ host, port }: Destination): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/**
 * Parses a setting that is a list of `host:port`. @throws ConfigError that names the setting and the malformed entry.
 */
export function readDestinations(list: readonly string[], setting: string): Destination[] {
  return list.map((text) => {
    const destination = parseDestination(text)
    if (!destination) throw new ConfigError(`${setting}: ${text} is not host:port`)
    return destination
  })
}

/** True if the destination is on the list. A listed host that begins with `*.` matches every name below it. */
export function hasDestination(list: readonly Destination[], { host, port }: Destination): boolean {
  const names = [host, ...host.split('.').map((_, i, labels) => ['*', ...labels.slice(i + 1)].join('.'))]
  return list.some((one) => one.port === port && names.includes(one.host))
}

/** Splits an absolute-form target (RFC 9112, 3.2.2); keeps the path verbatim. */
export function parseAbsoluteForm(target: string): { destination: Destination; path: string } | undefined {
  const [, authority = '', rest = ''] = /^http:\/\/([^/?#]+)([/?][^#]*)?$/i.exec(target) ?? []
  const destination = parseDestination(authority, 80)
  return destination && { destination, path: rest.startsWith('/') ? rest : `/${rest}` }
}
