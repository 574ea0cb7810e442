import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkCustomDomain, checkSubdomain } from './names.ts'

const config = {
  PUBLIC_URL: 'https://api.example:8443/x',
  BERTH_APP_DOMAIN: 'apps.example',
  BERTH_AGENT_DOMAIN: 'agents.example',
  BERTH_GATEWAY_DOMAIN: 'gateway.example',
}

describe('a subdomain', () => {
  it('a subdomain is one label, in one spelling', () => {
    for (const [input, name] of [
      ['shop', 'shop'],
      ['My-Shop-42', 'my-shop-42'],
      ['bücher', 'xn--bcher-kva'],
      ['ＳＨＯＰ', 'shop'],
      ['a', 'a'],
    ] as const)
      assert.deepEqual(checkSubdomain(input), { name })
    for (const input of [
      '',
      ' ',
      'a.b',
      '-a',
      'a-',
      'a_b',
      'a b',
      'a'.repeat(64),
      'a/b',
      'a%62',
      '*',
      'a\0b',
    ])
      assert.match(checkSubdomain(input).fault ?? '', /^must be one label/, input)
  })
  it('a subdomain has not the brand in it, in any spelling, and is not reserved', () => {
    for (const input of ['berth', 'myBerth1', 'pinata-shop', 'ｐinata'])
      assert.match(checkSubdomain(input).fault ?? '', /^must not contain/, input)
    for (const input of ['www', 'API', 'x1234567', 'xabcdefg'])
      assert.equal(checkSubdomain(input).fault, 'is reserved', input)
    assert.equal(checkSubdomain('x12345678').name, 'x12345678')
  })
})

describe('a custom domain', () => {
  it('a custom domain is a name with dots, in one spelling', () => {
    for (const [input, name] of [
      ['Shop.Example.TEST.', 'shop.example.test'],
      ['bücher.example', 'xn--bcher-kva.example'],
      ['example.com', 'example.com'],
      ['example', undefined],
    ] as const)
      assert.equal(checkCustomDomain(input, config).name, name)
  })
  it('a custom domain is neither an address nor a name of this machine or of Berth', () => {
    for (const input of [
      '',
      'localhost',
      'shop.localhost',
      '127.0.0.1',
      '0x7f.1',
      '2130706433',
      '[::1]',
      '::1',
      'a..b',
      '_a.example.com',
      '*.example.com',
      'shop.example.com:80',
      'http://shop.example.com',
      'shop.example.com/x',
      `${'a.'.repeat(130)}com`,
      'apps.example',
      'a.apps.example',
      'x.agents.example',
      'gateway.example',
      'api.example',
      'www.api.example',
      'shop.berth.example',
      'pinata.cloud',
    ])
      assert.equal(typeof checkCustomDomain(input, config).fault, 'string', input)
    assert.equal(checkCustomDomain('myapps.example', config).name, 'myapps.example')
  })
})
