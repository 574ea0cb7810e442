import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from '../config.ts'
import { ConfigError } from '../errors.ts'
import { openIdProvider } from './openid-provider.ts'

const all = {
  BERTH_OIDC_ISSUER: 'https://id.example.com',
  BERTH_OIDC_CLIENT_ID: 'berth',
  BERTH_OIDC_CLIENT_SECRET: 'secret',
}

describe('the settings of an OpenID provider', () => {
  it('the settings of an OpenID provider must be set together or not at all', () => {
    assert.equal(openIdProvider(loadConfig({})), undefined)
    assert.equal(openIdProvider(loadConfig(all))?.name, 'single sign-on')
    for (const name of Object.keys(all))
      assert.throws(
        () => openIdProvider(loadConfig({ ...all, [name]: '' })),
        (error) => error instanceof ConfigError && error.message.startsWith(`${name}: has to be set`),
      )
  })
  it('BERTH_OIDC_JOIN maps domains to workspaces and roles', () => {
    const { BERTH_OIDC_JOIN } = loadConfig({
      BERTH_OIDC_JOIN: 'Example.com:member:a: b, x.org:viewer:default',
    })
    assert.deepEqual(BERTH_OIDC_JOIN, [
      { domain: 'example.com', role: 'member', workspace: 'a: b' },
      { domain: 'x.org', role: 'viewer', workspace: 'default' },
    ])
  })
})
