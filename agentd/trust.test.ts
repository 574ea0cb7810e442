import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { rootCertificates } from 'node:tls'
import { agentPaths } from './paths.ts'
import { trustEnvironment, writeTrust } from './trust.ts'

const CA = '-----BEGIN CERTIFICATE-----\nQ0E=\n-----END CERTIFICATE-----'

async function scene(t: TestContext) {
  const home = await mkdtemp(join(tmpdir(), 'trust-'))
  t.after(() => rm(home, { recursive: true }))
  const paths = agentPaths(home, home)
  const roots = join(home, 'roots.pem')
  await writeFile(roots, 'the roots\n\n')
  const { NODE_EXTRA_CA_CERTS: added = '', SSL_CERT_FILE: all = '' } = trustEnvironment(paths)
  return { home, paths, roots, added, all }
}

test('programs trust the CA in addition to the system’s roots', async (t) => {
  const { paths, roots, added, all } = await scene(t)
  await writeTrust(paths, CA, { own: {}, roots })
  assert.equal(await readFile(added, 'utf8'), `${CA}\n`)
  assert.equal(await readFile(all, 'utf8'), `the roots\n${CA}\n`)
  const { ino } = await stat(all)
  await writeTrust(paths, CA, { own: {}, roots })
  assert.equal((await stat(all)).ino, ino, 'a repeat writes nothing')
})

test('programs still trust what the image of the operator adds', async (t) => {
  const { home, paths, roots, added, all } = await scene(t)
  const own = { NODE_EXTRA_CA_CERTS: join(home, 'extra.pem'), SSL_CERT_FILE: join(home, 'own.pem') }
  await writeFile(own.NODE_EXTRA_CA_CERTS, 'extra')
  await writeFile(own.SSL_CERT_FILE, 'own roots')
  await writeTrust(paths, CA, { own, roots })
  assert.equal(await readFile(added, 'utf8'), `extra\n${CA}\n`)
  assert.equal(await readFile(all, 'utf8'), `own roots\nextra\n${CA}\n`)
})

test('without roots of the system, programs trust those of Node', async (t) => {
  const { home, paths, all } = await scene(t)
  await writeTrust(paths, CA, { own: {}, roots: join(home, 'none') })
  assert.ok((await readFile(all, 'utf8')).startsWith(rootCertificates[0] as string))
})

test('a link that the agent put in place of a file is replaced, and its target stays', async (t) => {
  const { home, paths, roots, added } = await scene(t)
  await mkdir(join(paths.state, 'berth'), { recursive: true })
  await symlink(join(home, 'target'), added)
  await writeFile(join(home, 'target'), 'mine')
  await writeTrust(paths, CA, { own: {}, roots })
  assert.equal(await readFile(added, 'utf8'), `${CA}\n`)
  assert.equal(await readFile(join(home, 'target'), 'utf8'), 'mine')
})
