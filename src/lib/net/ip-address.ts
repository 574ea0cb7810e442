import { BlockList, isIP, SocketAddress } from 'node:net'

/**
 * Non-public addresses: this host, private and shared networks, link-local (with the cloud's metadata service),
 * documentation, multicast and reserved ranges (IANA special-purpose address registries, RFC 6890 and its updates).
 */
const special = new BlockList()
for (const range of [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]) {
  const [net = '', bits] = range.split('/')
  special.addSubnet(net, Number(bits), 'ipv4')
}
/** Global unicast; everything else in IPv6 is special. Exceptions inside it: Teredo, documentation, 6to4. */
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')
for (const range of ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']) {
  const [net = '', bits] = range.split('/')
  special.addSubnet(net, Number(bits), 'ipv6')
}
/** IPv6 addresses that represent IPv4 addresses: IPv4-mapped (RFC 4291) and the well-known NAT64 prefix (RFC 6052). */
const ipv4Inside = new BlockList()
ipv4Inside.addSubnet('::ffff:0:0', 96, 'ipv6')
ipv4Inside.addSubnet('64:ff9b::', 96, 'ipv6')

/** True for any IP address except public ones. @throws TypeError if it is not an IP address. */
export function isPrivateAddress(ip: string): boolean {
  const [address = ''] = ip.split('%', 1)
  const version = isIP(address)
  if (version === 0) throw new TypeError(`${ip} is not an IP address`)
  const ipv4 = toIPv4(address)
  if (ipv4) return special.check(ipv4, 'ipv4')
  return !globalUnicast.check(address, 'ipv6') || special.check(address, 'ipv6')
}

/** The IPv4 address that an IP address represents, in any spelling; undefined for other IPv6 addresses. */
export function toIPv4(ip: string): string | undefined {
  if (isIP(ip) === 4) return ip
  return ipv4Inside.check(ip, 'ipv6') ? lastFourBytes(ip) : undefined
}

/** The last 32 bits of an IPv6 address, in any spelling, as an IPv4 address. */
function lastFourBytes(ipv6: string): string {
  const { address } = new SocketAddress({ address: ipv6, family: 'ipv6' })
  const [, dotted] = /:(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? []
  if (dotted) return dotted
  const [high = 0, low = 0] = address
    .split(':')
    .slice(-2)
    .map((group) => Number.parseInt(group || '0', 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** The longest spelling of an IP address. */
const LONGEST = 45

/**
 * The name under which a client is counted: its IPv4 address, or the /64 that one IPv6 customer has.
 * @param ip `req.ip`, which follows BERTH_TRUST_PROXY.
 * @returns undefined for loopback: a developer, or an untrusted proxy on this machine that carries all clients.
 */
export function clientAddress(ip: string | undefined): string | undefined {
  if (ip === undefined) return undefined
  // A trusted proxy may add a zone, or the port of the connection.
  const [withoutZone = ''] = ip
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
    .split('%', 1)
  const address = withoutZone.slice(0, LONGEST)
  if (isIP(address) === 0) return address
  const ipv4 = toIPv4(address)
  if (ipv4 !== undefined) return ipv4.startsWith('127.') ? undefined : ipv4
  const groups = eightGroups(new SocketAddress({ address, family: 'ipv6' }).address)
  if (groups.join(':') === '0:0:0:0:0:0:0:1') return undefined
  return `${groups.slice(0, 4).join(':')}::/64`
}

/** The groups of an IPv6 address in canonical spelling. */
function eightGroups(ipv6: string): string[] {
  const [before = '', after] = ipv6.split('::')
  const head = before.split(':').filter(Boolean)
  const tail = (after ?? '').split(':').filter(Boolean)
  return [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail]
}
