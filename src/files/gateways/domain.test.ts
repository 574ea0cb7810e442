import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { domainFault, domainOfHost } from './domain.ts'

describe('the name of a gateway', () => {
  for (const good of ['abc', '123', 'a-b', 'spring-catalogue', 'a'.repeat(63)])
    it(`may be ${good.slice(0, 20)}`, () => assert.equal(domainFault(good), undefined))

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
    it(`may not be ${JSON.stringify(name).slice(0, 20)}`, () => assert.match(domainFault(name) ?? '', fault))
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
    ['[::1]:3000', undefined],
    ['', undefined],
  ]
  for (const [host, domain] of cases)
    it(`${host || 'none'} is ${domain ?? 'none'}`, () =>
      assert.equal(domainOfHost(host, 'gateway.example'), domain))
})
