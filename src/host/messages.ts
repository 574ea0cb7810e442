/** What of an HTTP/1.1 message a proxy passes on (RFC 9110, 7.6). */

/** Headers as Node has them raw: name, value, name, value. Their order and repeated ones are kept. */
export type RawHeaders = readonly string[]

/** For one connection only (RFC 9110, 7.6.1). The body's framing is made anew for the next connection. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** The headers that go on: not those for one connection, those that `Connection` names, and those of `alsoDropped`. */
export function withoutHopByHop(headers: RawHeaders, alsoDropped: readonly string[] = []): string[] {
  const dropped = new Set([...HOP_BY_HOP, ...alsoDropped])
  for (const [name, value] of pairs(headers)) {
    if (name.toLowerCase() !== 'connection') continue
    for (const option of value.split(',')) dropped.add(option.trim().toLowerCase())
  }
  // Named by a malicious `Connection`, its loss would leave a body without a length.
  dropped.delete('content-length')
  return pairs(headers)
    .filter(([name]) => !dropped.has(name.toLowerCase()))
    .flat()
}

function pairs(headers: RawHeaders): [name: string, value: string][] {
  return Array.from({ length: headers.length / 2 }, (_, i) => [
    headers[2 * i] ?? '',
    headers[2 * i + 1] ?? '',
  ])
}
