import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { clientAddress, isPrivateAddress, toIPv4 } from './ip-address.ts'

const PRIVATE = {
  'this network and this host': ['0.0.0.0', '0.1.2.3', '127.0.0.1', '127.255.255.255', '::', '::1'],
  'private networks (RFC 1918, RFC 6598, RFC 4193)': [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '192.168.0.0',
    '192.168.255.255',
    '100.64.0.0',
    '100.127.255.255',
    'fc00::1',
    'fd12:3456:789a::1',
  ],
  'link-local, with the metadata service': [
    '169.254.0.0',
    '169.254.169.254',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
  ],
  'documentation, benchmarks, protocol assignments': [
    '192.0.0.8',
    '192.0.2.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.7',
    '203.0.113.7',
    '2001:db8::1',
    '3fff::1',
    '2001:2::1',
  ],
  'multicast, reserved, broadcast': [
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    'ff02::1',
  ],
  'IPv4-mapped, in every spelling': [
    '::ffff:127.0.0.1',
    '::FFFF:10.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '::ffff:0:0',
    '::ffff:0.0.0.1',
  ],
  'NAT64 to a private address': [
    '64:ff9b::127.0.0.1',
    '64:ff9b::a00:1',
    '64:ff9b::',
    '64:ff9b::1',
    '64:ff9b::a9fe:a9fe',
  ],
  'other ways to wrap IPv4': [
    '::127.0.0.1', // IPv4-compatible, deprecated
    '::8.8.8.8',
    '64:ff9b:1::8.8.8.8', // NAT64 of a local network
    '2002:7f00:1::', // 6to4
    '2002:808:808::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2', // Teredo
  ],
  'IPv6 outside of global unicast': ['100::1', '1fff::1', '4000::1', '5f00::1', 'fec0::1'],
}

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '192.169.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2001:4860:4860::8888',
  '2003::1',
  '::ffff:8.8.8.8',
  '::ffff:808:808',
  '64:ff9b::8.8.8.8',
  '64:ff9b::808:808',
  '64:ff9b::100:0', // 1.0.0.0: the zero group must not be lost
]

describe('isPrivateAddress', () => {
  for (const [kind, addresses] of Object.entries(PRIVATE)) {
    test(`isPrivateAddress returns true for ${kind}`, () => {
      for (const address of addresses) assert.equal(isPrivateAddress(address), true, address)
    })
  }

  test('isPrivateAddress returns false for public addresses, up to the edges of the private ranges', () => {
    for (const address of PUBLIC) assert.equal(isPrivateAddress(address), false, address)
  })

  test('isPrivateAddress treats an IPv4 address the same when mapped or behind NAT64', () => {
    const samples = Array.from({ length: 256 }, (_, first) => [`${first}.0.0.1`, `${first}.168.1.0`]).flat()
    for (const ip of samples) {
      const expected = isPrivateAddress(ip)
      assert.equal(isPrivateAddress(`::ffff:${ip}`), expected, `::ffff:${ip}`)
      assert.equal(isPrivateAddress(`64:ff9b::${ip}`), expected, `64:ff9b::${ip}`)
    }
  })

  test('isPrivateAddress throws on text that is not an IP address', () => {
    for (const text of ['', 'localhost', '127.1', '0x7f.0.0.1', '1.2.3.4.5', '[::1]', '::g', '1.1.1.1/8']) {
      assert.throws(() => isPrivateAddress(text), TypeError, text)
    }
  })
})

test('toIPv4 finds IPv4 addresses, even if mapped or behind NAT64', () => {
  for (const ip of ['44.1.1.1', '::ffff:44.1.1.1', '::FFFF:2c01:101', '64:ff9b::2c01:101'])
    assert.equal(toIPv4(ip), '44.1.1.1', ip)
  for (const ip of ['::1', '2003::2c01:101', '::44.1.1.1']) assert.equal(toIPv4(ip), undefined, ip)
})

const cases: Record<string, string | undefined> = {
  '203.0.113.7': '203.0.113.7',
  '::ffff:203.0.113.7': '203.0.113.7',
  '::FFFF:cb00:7107': '203.0.113.7',
  '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
  '2001:DB8:1:2::9': '2001:db8:1:2::/64',
  '2001:db8::1': '2001:db8:0:0::/64',
  'fe80::1%eth0': 'fe80:0:0:0::/64',
  '127.0.0.1': undefined,
  '::1': undefined,
  '::ffff:127.0.0.5': undefined,
  '203.0.113.7:4711': '203.0.113.7',
  '[2001:db8:1:2::9]:4711': '2001:db8:1:2::/64',
  'not-an-address:80': 'not-an-address:80',
}
for (const [ip, address] of Object.entries(cases))
  test(`the client address ${ip} is counted as ${address ?? 'nobody'}`, () =>
    assert.equal(clientAddress(ip), address))

test('an invalid client address is counted, but truncated', () => {
  assert.equal(clientAddress('x'.repeat(10_000))?.length, 45)
  assert.equal(clientAddress(undefined), undefined)
})
