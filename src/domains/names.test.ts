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
  it('a subdomain is a single label with one canonical spelling', () => {
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
  it('a subdomain of digits is a name, not an address [report: domain names]', () => {
    for (const name of ['123', '0', '0x7f', '1e3', '1-2']) assert.deepEqual(checkSubdomain(name), { name })
    assert.deepEqual(checkSubdomain('１２３'), { name: '123' })
  })
  it('a subdomain that no URL parser decodes is rejected [report: domain names]', () => {
    for (const input of [
      'xn--a',
      'XN--A',
      'xn--',
      'xn--0',
      'xn--abc',
      'xn--zn7c',
      'xn--shop-',
      'xn--fa-hia-',
    ])
      assert.match(checkSubdomain(input).fault ?? '', /^must be one label/, input)
    for (const name of ['xn--bcher-kva', 'xn--ls8h', 'xn--fa-hia'])
      assert.deepEqual(checkSubdomain(name), { name })
  })
  it('a subdomain that looks like the brand is rejected, in any alphabet [report: domain names]', () => {
    for (const input of [
      'bеrth',
      'my-bеrth-shop',
      'xn--brth-v4d',
      'рinata',
      'pіnаtа',
      'bertһ',
      'berтh',
      'вerth',
      'bérth',
      'piñata',
      'pınata',
      'ріոаtа',
      'ʙerth',
      'ｂеrth',
    ])
      assert.match(checkSubdomain(input).fault ?? '', /^must not contain letters that look like/, input)
    for (const input of ['конвертный', 'почта', 'вертолет', 'ναυτης', 'birth', 'pianta', 'bücher'])
      assert.equal(checkSubdomain(input).fault, undefined, input)
  })
  it('a subdomain must not contain the brand in any spelling or be reserved', () => {
    for (const input of ['berth', 'myBerth1', 'pinata-shop', 'ｐinata'])
      assert.match(checkSubdomain(input).fault ?? '', /^must not contain/, input)
    for (const input of ['www', 'API', 'x1234567', 'xabcdefg'])
      assert.equal(checkSubdomain(input).fault, 'is reserved', input)
    assert.equal(checkSubdomain('x12345678').name, 'x12345678')
  })
})

describe('a custom domain', () => {
  it('a custom domain is a name with dots and one canonical spelling', () => {
    for (const [input, name] of [
      ['Shop.Example.TEST.', 'shop.example.test'],
      ['bücher.example', 'xn--bcher-kva.example'],
      ['example.com', 'example.com'],
      ['example', undefined],
    ] as const)
      assert.equal(checkCustomDomain(input, config).name, name)
  })
  it('a custom domain is rejected if undecodable or similar to the brand [report: domain names]', () => {
    for (const input of [
      'xn--a.example.com',
      'shop.xn--0',
      'my.bеrth.example',
      'рinata.cloud',
      'xn--brth-v4d.com',
    ])
      assert.equal(typeof checkCustomDomain(input, config).fault, 'string', input)
    for (const name of ['123.example.com', '1.2.3.example.com', 'xn--bcher-kva.example'])
      assert.equal(checkCustomDomain(name, config).name, name)
  })
  it('a custom domain must not be an address or a name of this machine or of Berth', () => {
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
