import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { domainFault, readGatewayHost } from './gateway-domain.ts'

describe('the name of a gateway', () => {
  for (const good of ['abc', '123', 'a-b', 'spring-catalogue', 'a'.repeat(63)])
    it(`the name of a gateway may be ${good.slice(0, 20)}`, () => assert.equal(domainFault(good), undefined))

  const bad: [string, RegExp][] = [
    ['', /^must be 3 to 63/],
    ['ab', /^must be 3 to 63/],
    ['a'.repeat(64), /^must be 3 to 63/],
    ['-abc', /hyphen/],
    ['abc-', /hyphen/],
    ['a.b', /letters/],
    ['a_b', /letters/],
    ['ABC', /letters/],
    ['abc\n', /letters/],
    ['münchen', /letters/],
    ['xn--mnchen-3ya', /letters/],
    ['berth', /^must not contain "berth"$/],
    ['my-berth-files', /^must not contain "berth"$/],
    ['www', /^is reserved$/],
  ]
  for (const [name, fault] of bad)
    it(`the name of a gateway may not be ${JSON.stringify(name).slice(0, 20)}`, () =>
      assert.match(domainFault(name) ?? '', fault))
})

describe('the gateway of a host', () => {
  const cases: [string, string | undefined][] = [
    ['files.gateway.example', 'files'],
    ['FILES.Gateway.Example:8080', 'files'],
    ['files.gateway.example.', 'files'],
    ['files.gateway.example.:443', 'files'],
    ['gateway.example', undefined],
    ['.gateway.example', undefined],
    ['a.files.gateway.example', undefined],
    ['filesgateway.example', undefined],
    ['files.gateway.example.org', undefined],
    ['files', undefined],
    ['bafkqaaa.files.gateway.example', undefined],
    ['bafkqaaa.ipns.files.gateway.example', undefined],
    ['x.bafkqaaa.ipfs.files.gateway.example', undefined],
    ['bafkqaa0.ipfs.files.gateway.example', undefined],
    ['bafkqaaa.ipfs.gateway.example', undefined],
    [`b${'a'.repeat(63)}.ipfs.files.gateway.example`, 'files'],
    ['[::1]:3000', undefined],
    ['', undefined],
  ]
  for (const [host, domain] of cases)
    it(`the gateway of the host ${host || 'none'} is ${domain ?? 'none'}`, () =>
      assert.equal(readGatewayHost(host, 'gateway.example')?.domain, domain))

  it('the host of a gateway may name a CID', () => {
    const host = { domain: 'files', cid: 'bafkqaaa' }
    assert.deepEqual(readGatewayHost('BAFKQAAA.ipfs.files.gateway.example:1', 'gateway.example'), host)
    // Below a domain that looks like a CID's host, a gateway's name is not a CID.
    const bob = readGatewayHost('bob.ipfs.example', 'ipfs.example')
    assert.deepEqual(bob, { domain: 'bob', cid: undefined })
  })
})
