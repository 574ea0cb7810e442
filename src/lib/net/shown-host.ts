/** Addresses that a person on this machine reaches as localhost. */
const LOCAL = ['0.0.0.0', '::', '[::]', '127.0.0.1']

/** The host of a URL that leads to what listens on `host`. Passkeys and sessions know a host by one name only. */
export function shownHost(host: string): string {
  if (LOCAL.includes(host)) return 'localhost'
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}
