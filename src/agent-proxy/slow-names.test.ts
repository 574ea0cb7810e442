/**
 * A name server that answers only some names needs its own network and resolver: a namespace that only this test sees.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { useFolder } from '../../test/support/folder.ts'

const inNamespace = (resolvConf: string, command: string, ...args: string[]) =>
  spawnSync(
    'unshare',
    [
      '-rmn',
      'sh',
      '-c',
      `ip link set lo up && mount --bind "$1" /etc/resolv.conf && shift && ${command}`,
      'sh',
      resolvConf,
      ...args,
    ],
    { encoding: 'utf8', timeout: 120_000 },
  )

/** Asks for many names that never get an answer, then for one that does not exist; prints the status and the time. */
const ASK = `
  import { createSocket } from 'node:dgram'
  import { once } from 'node:events'
  import { request } from 'node:http'
  import { Registry } from 'prom-client'
  import { EgressProxy } from '${import.meta.resolve('./egress.ts')}'
  const dns = createSocket('udp4')
  dns.on('message', (query, { port, address }) => {
    if (query.includes('slow')) return
    const head = Buffer.from([query[0], query[1], 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0])
    dns.send(Buffer.concat([head, query.subarray(12)]), port, address)
  })
  await once(dns.bind(53, '127.0.0.1'), 'listening')
  const log = { debug() {}, error: console.error }
  const egress = new EgressProxy({ allowed: [], log, registry: new Registry() })
  const settings = { host: 'HOST', port: 'PORT' }
  const port = await egress.listen({ host: '127.0.0.1', port: 0, settings })
  const ask = (path) => {
    const sent = request({ port, method: 'CONNECT', path, agent: false }).on('error', () => {})
    sent.end()
    return once(sent, 'connect')
  }
  for (let i = 0; i < 16; i++) ask('slow' + i + '.example:443').catch(() => {})
  const start = performance.now()
  const [{ statusCode }] = await ask('none.example:443')
  console.log(JSON.stringify({ statusCode, ms: performance.now() - start }))
  process.exit()`

test('names without a DNS answer do not delay other names of the egress proxy', async (t) => {
  const folder = await useFolder('berth-names-', t)
  const resolvConf = join(folder, 'resolv.conf')
  await writeFile(resolvConf, 'nameserver 127.0.0.1\n')
  if (inNamespace(resolvConf, 'true').status !== 0) return t.skip('no namespaces here')
  const { stdout, stderr } = inNamespace(
    resolvConf,
    '"$1" --input-type=module -e "$2"',
    process.execPath,
    ASK,
  )
  const { statusCode, ms } = JSON.parse(stdout || '{}')
  assert.equal(statusCode, 502, stderr)
  assert.ok(ms < 5000, `${ms} ms`)
})
