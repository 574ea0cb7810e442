/** Addresses that a user on this machine reaches as localhost. */
const LOCAL = ['0.0.0.0', '::', '[::]', '127.0.0.1']

/**
 * The URL host that leads to a server listening on `host`. Always the same name, because passkeys and sessions depend
 * on it.
 */
export function shownHost(host: string): string {
  if (LOCAL.includes(host)) return 'localhost'
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}
