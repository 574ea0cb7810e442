/**
 * `npm run gateway-conformance -- <checkout>`: runs the conformance suite for IPFS gateways against a Berth with its
 * fixtures; BERTH_TEST_DOCS=write writes the counts to docs/gateway-conformance.md. No registry has the suite: it is a
 * checkout of github.com/ipfs/gateway-conformance, built as `gateway-conformance`.
 *
 * A workspace has two gateways: one serves content at paths, the other has a host for each CID. Gateway names do not
 * resolve, so a forwarder on loopback represents the first gateway.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { CarReader } from '@ipld/car'
import { CID } from 'multiformats/cid'
import { BlockFolder } from '../../src/storage/embedded/blocks.ts'
import { openContext } from '../contract/context.ts'
import { file, type Part, send } from '../contract/upload-form.ts'
import { startDnsServer } from '../support/dns.ts'
import { startStack } from '../support/stack.ts'
import { type Case, reportConformance } from './conformance-report.ts'

const RUN_MS = 600_000
/** The suite also requests content at this host: it is a custom domain of the gateway for paths. */
const CUSTOM_DOMAIN = 'fake.domain.com'
/** CIDs that contain their content and that the suite requests. */
const INLINE = ['bafkqaf3imvwgy3zaneqgc3janfxgy2lomvscay3jmqfa', 'bafkqabtimvwgy3yk']

const execute = promisify(execFile)
const checkout = resolve(process.argv[2] ?? 'gateway-conformance')
const dns = await startDnsServer()
after(() => dns.close())
const stack = await startStack({ env: { BERTH_TRUST_PROXY: 'loopback', BERTH_DNS_SERVER: dns.address } })
const context = await openContext(stack)
const workspace = await context.workspace()
const dir = await mkdtemp(join(tmpdir(), 'berth-conformance-'))
after(() => rm(dir, { recursive: true, force: true }))

/** A gateway, and its host with its port. */
async function openGateway(domain: string, serving: object): Promise<{ id: string; host: string }> {
  const { id, host } = (await workspace.api.post('/v3/gateways', { domain })).body.data
  const { status } = await workspace.api.request('PATCH', `/v3/gateways/${id}`, { json: serving })
  assert.equal(status, 200)
  return { id, host: `${host}:${new URL(stack.url).port}` }
}

async function addDomain(gatewayId: string, domain: string): Promise<void> {
  const path = `/v3/gateways/${gatewayId}/custom_domain`
  const { txt_name, txt_value, custom_domain_id } = (await workspace.api.post(path, { domain })).body.data
  dns.setTxt(txt_name, txt_value)
  assert.equal((await workspace.api.post(`${path}/${custom_domain_id}/verify`, undefined)).status, 200)
}

/** Forwards requests unchanged, except that requests to its own address go to `host`. */
async function forwardTo(host: string): Promise<string> {
  const { hostname, port } = new URL(stack.url)
  const server = createServer((req, res) => {
    const headers = { ...req.headers, host: req.headers.host === own ? host : (req.headers.host ?? '') }
    const sent = request({ hostname, port, method: req.method, path: req.url, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('error', () => res.destroy()).pipe(res)
    })
    req.pipe(sent.on('error', () => res.destroy()))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  after(() => server.close())
  const own = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return `http://${own}`
}

/** Stores a fixture: by an upload, or by hand if one of its blocks is missing on purpose, which no upload may do. */
async function keep(path: string): Promise<void> {
  const bytes = await readFile(path)
  const form: Part[] = [['network', 'public'], ['car', 'true'], file(bytes, 'fixture.car')]
  const { status, body } = await send(workspace.api, form)
  if (status === 200) return
  assert.match(JSON.stringify(body), /that it links to (is|are) missing/, path)
  const car = await CarReader.fromBytes(bytes)
  if (stack.parts) {
    const url = `${stack.parts.kubo.apiUrl}/api/v0/dag/import?pin-roots=false`
    const content = new FormData()
    content.append('file', new Blob([bytes]))
    assert.ok((await fetch(url, { method: 'POST', body: content })).ok)
  } else {
    const folder = new BlockFolder(join(stack.dataDir, 'ipfs/public'), { touchAfterMs: RUN_MS })
    for await (const block of car.blocks()) await folder.write(CID.decode(block.cid.bytes), block.bytes)
  }
  const [root] = await car.getRoots()
  await context.sql(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, size, mime_type)
     VALUES (gen_random_uuid(), $1, 'public', 'pinned', $2, $3, '{}', '{}', 3072, 'application/octet-stream')`,
    [workspace.id, `${root}`, `${root?.toV1()}`],
  )
}

/** The cases in the suite's report: tests, and below them the checks of their responses. */
function readCases(report: string): Case[] {
  const ended = new Map<string, boolean>()
  for (const line of report.trim().split('\n')) {
    const { Test: name, Action: action } = JSON.parse(line)
    if (name && (action === 'pass' || action === 'fail')) ended.set(name, action === 'pass')
  }
  return [...ended].filter(([name]) => name.includes('/')).map(([name, passed]) => ({ name, passed }))
}

test('the conformance suite for IPFS gateways passes, except for left-out tests', async () => {
  for await (const path of glob('fixtures/**/*.car', { cwd: checkout })) await keep(join(checkout, path))
  for (const cid of INLINE) await workspace.api.pin({ cid }, { wait: 60 })
  const paths = await openGateway('conform-paths', { inner_cids: true })
  await addDomain(paths.id, CUSTOM_DOMAIN)
  const hosts = await openGateway('conform-hosts', { inner_cids: true, cid_hosts: true })
  const report = join(dir, 'report.json')
  const urls = ['--gateway-url', await forwardTo(paths.host), '--subdomain-url', `http://${hosts.host}`]
  const args = ['test', ...urls, '--json', report, '--', '-timeout', '10m']
  // The program exits with an error if a test fails.
  await execute(join(checkout, 'gateway-conformance'), args, {
    cwd: checkout,
    timeout: RUN_MS,
    maxBuffer: 2 ** 28,
  }).catch(() => {})
  const { stdout: commit } = await execute('git', ['-C', checkout, 'rev-parse', 'HEAD'])
  await reportConformance(commit.trim(), readCases(await readFile(report, 'utf8')))
})
