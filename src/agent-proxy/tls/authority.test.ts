import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect, createSecureContext, createServer } from 'node:tls'
import { agentAuthority } from './authority.ts'

const KEY = 'k'.repeat(43)
const WITHOUT_OPENSSL = spawnSync('openssl', ['version']).error && 'openssl is not installed'

test('each agent and AGENT_PROXY_KEY has an authority with its own key, which stays the same', () => {
  const keyOf = (key: string, agentId: string) =>
    new X509Certificate(agentAuthority(key, agentId).certificatePem).publicKey.export({ format: 'jwk' }).x
  assert.equal(keyOf(KEY, 'xaaaaaaa'), keyOf(KEY, 'xaaaaaaa'))
  assert.notEqual(keyOf(KEY, 'xaaaaaaa'), keyOf(KEY, 'xbbbbbbb'))
  assert.notEqual(keyOf(KEY, 'xaaaaaaa'), keyOf('another key', 'xaaaaaaa'))
})

test('TLS clients trust a host of the authority under its name, and of no other authority', async (t) => {
  const { leafFor } = agentAuthority(KEY, 'xaaaaaaa')
  const server = createServer({ SNICallback: (host, done) => done(null, createSecureContext(leafFor(host))) })
  server.on('tlsClientError', () => {})
  server.on('secureConnection', (socket) => socket.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const handshake = async (servername: string, ca: string, checked = servername) => {
    const socket = connect({ port, servername, ca })
    await once(socket, 'secureConnect')
    const name = socket.getPeerX509Certificate()?.checkHost(checked)
    socket.destroy()
    return name
  }
  const { certificatePem: ca } = agentAuthority(KEY, 'xaaaaaaa')
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.example`
  assert.equal(await handshake('api.example.com', ca), 'api.example.com')
  assert.equal(await handshake(long, ca), long)
  assert.equal(await handshake('api.example.com', ca, 'www.example.com'), undefined)
  const other = agentAuthority(KEY, 'xbbbbbbb').certificatePem
  await assert.rejects(handshake('api.example.com', other), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
})

test('openssl verifies a host strictly', { skip: WITHOUT_OPENSSL }, (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'berth-authority-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const { certificatePem, leafFor } = agentAuthority(KEY, 'xaaaaaaa')
  writeFileSync(join(dir, 'ca.pem'), certificatePem)
  writeFileSync(join(dir, 'leaf.pem'), leafFor('api.example.com').cert)
  const checks = ['-x509_strict', '-purpose', 'sslserver', '-verify_hostname', 'api.example.com']
  const verify = ['verify', ...checks, '-CAfile', 'ca.pem', 'leaf.pem']
  assert.equal(execFileSync('openssl', verify, { cwd: dir, encoding: 'utf8' }), 'leaf.pem: OK\n')
})

test('a host keeps its certificate for a day, and it is valid for less than a week', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.UTC(2027, 0, 1) })
  const { leafFor } = agentAuthority(KEY, 'xaaaaaaa')
  const first = leafFor('api.example.com')
  const { validTo } = new X509Certificate(first.cert)
  assert.equal(new Date(validTo).toISOString(), '2027-01-07T00:00:00.000Z')
  t.mock.timers.tick(86_400_000 - 1)
  assert.equal(leafFor('api.example.com'), first)
  t.mock.timers.tick(1)
  assert.notEqual(leafFor('api.example.com'), first)
})
