/** The destination of a client of the egress proxy: a host and a port, read once, in one spelling. */
import { ConfigError } from '../errors.ts'
import { HOST_MACHINE } from '../lib/net/host-machine.ts'

/** Of the longest name in DNS, with the dot at its end (RFC 1035, 2.3.4). */
const NAME_CHARACTERS = 254

export interface Destination {
  /** A name in lower case, or an IP address without brackets. */
  host: string
  port: number
}

/**
 * Reads `host:port` or `[IPv6]:port`. Every spelling of an IPv4 address that resolvers take (`0x7f.1`,
 * `2130706433`) becomes the dotted one, so that a check of the text and the resolver cannot disagree. The name that
 * containers have for this machine becomes its loopback address.
 * @param defaultPort For texts that name no port; without it they are malformed.
 * @returns undefined when it is malformed: user information, a path and port 0 included.
 */
export function parseDestination(text: string, defaultPort?: number): Destination | undefined {
  const [, name = '', digits] = /^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i.exec(text) ?? []
  const port = digits === undefined ? defaultPort : Number(digits)
  // Each label of a name is compared with every host that is allowed.
  if (name.length > NAME_CHARACTERS) return undefined
  if (!name || !port || port > 65535 || !URL.canParse(`http://${name}`)) return undefined
  const { hostname } = new URL(`http://${name}`)
  return { host: hostname === HOST_MACHINE ? '127.0.0.1' : hostname.replace(/^\[|\]$/g, ''), port }
}

/** The destination as it is written in a `Host` header and in a log. */
export function formatDestination({ host, port }: Destination): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Reads a setting that is a list of `host:port`. @throws ConfigError naming it and the one that is malformed. */
export function readDestinations(list: readonly string[], setting: string): Destination[] {
  return list.map((text) => {
    const destination = parseDestination(text)
    if (!destination) throw new ConfigError(`${setting}: ${text} is not host:port`)
    return destination
  })
}

/** True for a destination that is on the list. A host on it that begins with `*.` stands for every name below. */
export function hasDestination(list: readonly Destination[], { host, port }: Destination): boolean {
  const names = [host, ...host.split('.').map((_, i, labels) => ['*', ...labels.slice(i + 1)].join('.'))]
  return list.some((one) => one.port === port && names.includes(one.host))
}

/** Splits an absolute-form target (RFC 9112, 3.2.2); the path stays as the client wrote it. */
export function parseAbsoluteForm(target: string): { destination: Destination; path: string } | undefined {
  const [, authority = '', rest = ''] = /^http:\/\/([^/?#]+)([/?][^#]*)?$/i.exec(target) ?? []
  const destination = parseDestination(authority, 80)
  return destination && { destination, path: rest.startsWith('/') ? rest : `/${rest}` }
}
