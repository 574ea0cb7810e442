import assert from 'node:assert/strict'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { buildClusterImage, type ClusterImageOptions } from '../../../src/openclaw/cluster-image.ts'
import { engineFolder } from '../../../src/openclaw/install.ts'
import { Registry } from '../../../src/openclaw/oci/registry.ts'
import { listen } from '../../support/egress.ts'
import { BASE_FILES, writeHollowBase } from '../../support/image-archive.ts'
import { LOGIN, startRegistry, withoutRegistry } from '../../support/registry.ts'

const skip = withoutRegistry
/** A version from a year without an engine release. */
const version = '2001.1.1'
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'
const platform = { os: 'linux', cpu: process.arch, libc: 'glibc' as const }

let dir: string
let enginesDir: string
let base: string

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-cluster-image-'))
  enginesDir = join(dir, 'engines')
  base = join(dir, 'base.tar')
  await writeHollowBase(base)
  const engine = join(engineFolder(enginesDir, version, platform), 'node_modules/openclaw')
  await mkdir(engine, { recursive: true })
  await writeFile(join(engine, 'openclaw.mjs'), 'console.log("engine")\n', { mode: 0o755 })
})
after(() => rm(dir, { recursive: true, force: true }))

const build = (to: ClusterImageOptions['to'], more: Partial<ClusterImageOptions> = {}) =>
  buildClusterImage({
    version,
    baseImage: base,
    enginesDir,
    architecture,
    name: `berth.test/openclaw:${version}`,
    to,
    ...more,
  })

/** Docker's settings with a login for a registry. */
async function logIn(registry: string, login = LOGIN): Promise<void> {
  process.env.DOCKER_CONFIG = join(dir, 'docker')
  await mkdir(process.env.DOCKER_CONFIG, { recursive: true })
  const auths = { [registry]: { auth: Buffer.from(login).toString('base64') } }
  await writeFile(join(process.env.DOCKER_CONFIG, 'config.json'), JSON.stringify({ auths }))
}

test('the same engine on the same base gives the same image, wherever and whenever it is built', async () => {
  const [first, second] = [join(dir, 'first.tar'), join(dir, 'second.tar')]
  const digest = await build({ archive: first })
  const elsewhere = join(dir, 'elsewhere')
  await cp(enginesDir, elsewhere, { recursive: true })
  const folder = engineFolder(elsewhere, version, platform)
  await utimes(join(folder, 'node_modules/openclaw/openclaw.mjs'), 1, 1)
  await writeFile(join(folder, 'package-lock.json'), '{"resolved": "https://another.registry.example"}')
  await mkdir(join(folder, 'compile-cache'))
  await writeFile(join(folder, 'compile-cache/code'), 'compiled there for agents that run as processes')
  assert.equal(await build({ archive: second }, { enginesDir: elsewhere }), digest)
  assert.deepEqual(await readFile(first), await readFile(second))
  assert.deepEqual(
    (await readdir(enginesDir)).filter((name) => name.startsWith('.image')),
    [],
  )
})

test('an image can be the base of another image, from an archive and from a registry', {
  skip,
}, async (t) => {
  const registry = await startRegistry(t)
  const name = `${registry}/berth/openclaw:${version}`
  const digest = await build('registry', { name })
  assert.equal(await build('registry', { name }), digest, 'a second build gives the same image')
  const archive = join(dir, 'base-of-another.tar')
  assert.equal(await build({ archive }, { name }), digest, 'the same in an archive')
  const onRegistry = await build('registry', { baseImage: name, name: `${name}-a` })
  const onDigest = await build('registry', {
    baseImage: `${name.replace(/:[^:]*$/, '')}@${digest}`,
    name: `${name}-b`,
  })
  const onArchive = await build('registry', { baseImage: archive, name: `${name}-c` })
  assert.deepEqual([onDigest, onArchive], [onRegistry, onRegistry])
  const image = await new Registry({ registry, repository: 'berth/openclaw', tag: '' }).pull(
    version,
    architecture,
    dir,
  )
  assert.equal(image.layers.length, 3)
  assert.deepEqual(image.config.config?.Entrypoint, [
    '/usr/bin/tini',
    '--',
    'node',
    '--max-semi-space-size=1',
    '/opt/agentd/main.js',
  ])
})

test('a registry that requires a password gets the one that Docker stores', { skip }, async (t) => {
  const registry = await startRegistry(t, 'password')
  const name = `${registry}/berth/openclaw:${version}`
  await logIn(registry, 'tester:another')
  await assert.rejects(build('registry', { name }), /does not accept the credentials of this machine \(401\)/)
  await logIn(registry)
  assert.match(await build('registry', { name }), /^sha256:/)
})

test('a registry that requires a token gets one from the server that it names', { skip }, async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwks = join(dir, 'jwks.json')
  await writeFile(
    jwks,
    JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' }] }),
  )
  const tokens = createServer(async (req, res) => {
    if (req.headers.authorization !== `Basic ${Buffer.from(LOGIN).toString('base64')}`)
      return void res.writeHead(401).end()
    const scope = new URL(req.url ?? '', 'http://x').searchParams.get('scope') ?? ''
    const [type, name, actions = ''] = scope.split(':')
    const token = await new SignJWT({ access: [{ type, name, actions: actions.split(',') }] })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer('tests')
      .setAudience('registry')
      .setSubject('tester')
      .setIssuedAt()
      .setNotBefore('0s')
      .setExpirationTime('1m')
      .sign(privateKey)
    res.end(JSON.stringify({ token }))
  })
  const realm = `http://127.0.0.1:${await listen(t, tokens)}/token`
  const registry = await startRegistry(t, {
    realm,
    service: 'registry',
    issuer: 'tests',
    jwks,
    signingalgorithms: ['ES256'],
  })
  await logIn(registry)
  assert.match(await build('registry', { name: `${registry}/berth/openclaw:${version}` }), /^sha256:/)
})

test('a base that lacks something is rejected with what is missing, before anything is written', async () => {
  const poor = join(dir, 'poor.tar')
  const archive = join(dir, 'never.tar')
  await writeHollowBase(
    poor,
    BASE_FILES.filter((name) => !/tini|ca-cert/.test(name)),
  )
  await assert.rejects(
    build({ archive }, { baseImage: poor }),
    /poor\.tar lacks tini, ca-certificates, which/,
  )
  await writeHollowBase(poor, BASE_FILES, ['NODE_VERSION=22.1.0'])
  await assert.rejects(build({ archive }, { baseImage: poor }), /has Node 22\.1, older than 24\.16/)
  await writeFile(poor, 'not an archive at all')
  await assert.rejects(
    build({ archive }, { baseImage: poor }),
    /poor\.tar (is not an image archive|cannot be read)/,
  )
  await assert.rejects(
    build({ archive }, { architecture: architecture === 'arm64' ? 'amd64' : 'arm64' }),
    /is for linux/,
  )
  await assert.rejects(readFile(archive), { code: 'ENOENT' })
})

test('an engine that needs another Node than its base has is rejected before anything is written', async () => {
  const unfit = '2001.1.2'
  const archive = join(dir, 'never.tar')
  const engine = join(engineFolder(enginesDir, unfit, platform), 'node_modules/openclaw')
  await mkdir(engine, { recursive: true })
  await writeFile(join(engine, 'package.json'), '{ "engines": { "node": ">=99.1.0" } }')
  const older = join(dir, 'older.tar')
  await writeHollowBase(older, BASE_FILES, ['NODE_VERSION=24.21.0'])
  await assert.rejects(build({ archive }, { version: unfit, baseImage: older }), {
    code: 'no_image',
    message: `OpenClaw 2001.1.2 needs Node >=99.1.0, and would run on Node 24.21.0 in ${older}`,
  })
  await writeFile(join(engine, '.openclaw-lifecycle-pending'), '')
  // A base that does not declare its Node counts as fit, and Berth's own Node has to launch the engine once.
  await assert.rejects(build({ archive }, { version: unfit }), {
    code: 'no_image',
    message: /needs Node >=99\.1\.0, even to install, and Berth runs on Node \d/,
  })
  await assert.rejects(readFile(archive), { code: 'ENOENT' })
})

test('a remote registry is contacted only by https', async () => {
  const remote = build('registry', { name: 'registry.invalid/berth/openclaw:1' })
  await assert.rejects(remote, /the registry registry\.invalid does not answer/)
})
