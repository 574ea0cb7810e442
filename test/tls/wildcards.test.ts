/** Wildcard certificates, configured by CADDY_WILDCARDS; from Caddy's own CA, which requires no DNS proof. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { AGENTS, APPS, GATEWAYS, startTlsWorld, type TlsWorld } from './world.ts'

let tls: TlsWorld
before(async () => {
  tls = await startTlsWorld({
    CADDY_WILDCARDS: 'wildcards.caddy',
    BERTH_GATEWAY_DOMAIN: GATEWAYS,
    BERTH_AGENT_DOMAIN: AGENTS,
    BERTH_APP_DOMAIN: APPS,
  })
})
after(() => tls?.stop())

describe('wildcard certificates', () => {
  it('names one label below a domain share a certificate, and unknown ones return 404', async () => {
    for (const domain of [GATEWAYS, AGENTS, APPS]) {
      assert.equal(await tls.handshake(`nobody.${domain}`), `DNS:*.${domain}`)
      assert.equal((await tls.ask(`nobody.${domain}`, '/')).status, 404)
    }
  })
  it('other names each get a certificate if Berth serves them', async () => {
    assert.equal(await tls.handshake(AGENTS), `DNS:${AGENTS}`)
    await assert.rejects(tls.handshake(`bafkqaaa.ipfs.nobody.${GATEWAYS}`))
    await assert.rejects(tls.handshake('nobody.example.org'))
  })
})
