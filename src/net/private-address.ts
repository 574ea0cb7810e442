import { BlockList, isIP } from 'node:net'

/**
 * Addresses that are not on the public internet: this host, private and shared networks, link-local
 * (with the cloud's metadata service), documentation, multicast and reserved ranges
 * (IANA special-purpose address registries, RFC 6890 and its updates).
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
/** Global unicast; everything else in IPv6 is special. Inside it: Teredo, documentation, 6to4. */
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')
for (const range of ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']) {
  const [net = '', bits] = range.split('/')
  special.addSubnet(net, Number(bits), 'ipv6')
}

/** Whether an IP address is anything but a public one. @throws TypeError when it is no IP address. */
export function isPrivateAddress(ip: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1]
  const address = mapped ?? ip.replace(/%.*$/, '')
  const version = isIP(address)
  if (version === 0) throw new TypeError(`${ip} is no IP address`)
  if (version === 4) return special.check(address, 'ipv4')
  return !globalUnicast.check(address, 'ipv6') || special.check(address, 'ipv6')
}
