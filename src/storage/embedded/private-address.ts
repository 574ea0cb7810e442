import { BlockList, isIP } from 'node:net'
import type { Multiaddr } from '@multiformats/multiaddr'

/** Ranges that are not public unicast: IANA's special-purpose registries for IPv4 and IPv6. */
const special = new BlockList()
for (const [address, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  special.addSubnet(address, prefix, 'ipv4')
}
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')
for (const [address, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  special.addSubnet(address, prefix, 'ipv6')
}

/** Whether an IP address is public unicast, neither private, loopback, link-local, reserved nor a tunnel to such. */
export function isPublicIp(ip: string): boolean {
  const version = isIP(ip)
  if (version === 4) return !special.check(ip, 'ipv4')
  return version === 6 && globalUnicast.check(ip, 'ipv6') && !special.check(ip, 'ipv6')
}

/**
 * Whether a multiaddr begins with a public IP address. A DNS name does not count: what it resolves
 * to is only known to the transport, when it is too late to refuse.
 */
export function isPublicAddress(address: Multiaddr): boolean {
  const [first] = address.getComponents()
  return (first?.name === 'ip4' || first?.name === 'ip6') && isPublicIp(first.value ?? '')
}
