import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Confidential, exceptionsIn } from './confidential.ts'
import { keyIn } from './key-shapes.ts'

const A = 'Ab0'.repeat(40)

/** Made-up keys, in parts, so that repository scanners do not report them. */
const KEYS = [
  `-----BEGIN ${'OPENSSH'} PRIVATE KEY-----\nb3BlbnNzaC1r`,
  `-----BEGIN ${'RSA'} PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED`,
  `-----BEGIN ${'PRIVATE'} KEY-----`,
  `{"private_key": "-----BEGIN ${'PRIVATE'} KEY-----\\nMIIE"}`,
  `-----BEGIN ${'PGP'} PRIVATE KEY BLOCK-----\n`,
  `---- BEGIN ${'SSH2'} ENCRYPTED PRIVATE KEY ----\n`,
  `PuTTY-User-${'Key'}-File-3: ssh-ed25519`,
  `AGE-SECRET-${'KEY'}-1${'QPZRY9X8'.repeat(7)}`,
  `OPENAI_API_KEY=sk-${'proj'}-${A.slice(0, 60)}`,
  `key: sk-${A.slice(0, 48)}`,
  `"sk-${'ant'}-api03-${A.slice(0, 95)}"`,
  `sk-${'or'}-v1-${'0af'.repeat(20)}`,
  `gsk_${A.slice(0, 52)}`,
  `AIza${A.slice(0, 35)}`,
  `AKIA${'ABCDEFGH23456789'}`,
  `aws_secret_access_key = ${A.slice(0, 40)}`,
  `AccountKey=${A.slice(0, 86)}==`,
  `https://x:ghp_${A.slice(0, 36)}@github.com`,
  `github_pat_${A.slice(0, 82)}`,
  `glpat-${A.slice(0, 20)}`,
  `xoxb-${'1234567890'}-${A.slice(0, 24)}`,
  `https://hooks.slack.com/${'services'}/T0123ABCD/B0123ABCD/${A.slice(0, 24)}`,
  `110201543:AA${A.slice(0, 33)}`,
  `sk_live_${A.slice(0, 24)}`,
  `//registry.npmjs.org/:_authToken=${A.slice(0, 36)}`,
  `hf_${A.slice(0, 34)}`,
]

const HARMLESS = [
  'if (text.startsWith("-----BEGIN RSA PRIVATE KEY-----")) refuse()',
  `-----BEGIN ${'PUBLIC'} KEY-----\nMIIB`,
  `-----BEGIN ${'CERTIFICATE'}-----\nMIIB`,
  'AKIAIOSFODNN7EXAMPLE',
  'disk-space-is-what-the-risk-assessment-is-about',
  'class="sk-fading-circle sk-circle-fade-dot"',
  '//registry.npmjs.org/:_authToken=$' + '{NPM_TOKEN}',
  'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391',
  'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP me@example.com',
]

test('keys are recognised by their shape, unlike prose [report: secrets in snapshots]', () => {
  for (const text of KEYS) assert.notEqual(keyIn(`before ${text} after`), undefined, text)
  for (const text of HARMLESS) assert.equal(keyIn(text), undefined, text)
})

const NAMED = [
  'workspace/id_rsa',
  'ID_ED25519',
  'id_ed25519_sk',
  'id_rsa.bak',
  '.env',
  '.ENV',
  'a/.Env.Local',
  '.envrc',
  'prod.env',
  '.env/x',
  'Server.KEY',
  'a.pem',
  'a.P12',
  'putty.ppk',
  'secrets',
  'secrets.json',
  'Secrets/x',
  'secrets-prod.yaml',
  '.ssh/config',
  '.netrc',
  '.git-credentials',
]
const UNNAMED = [
  'secretsanta.md',
  'secretsmanager.ts',
  'secretary',
  '.env.example',
  '.ENV.sample',
  'id_rsa.pub',
  'keys',
  'my.key.md',
  'environment',
  'workspace/.gitignore',
]

test('files named like secrets stay out in any case, unlike secretsanta.md [report: secrets in snapshots]', () => {
  const confidential = new Confidential([], [])
  for (const path of NAMED) assert.match(confidential.byName(path) ?? '', /^files of this name/, path)
  for (const path of UNNAMED) assert.equal(confidential.byName(path), undefined, path)
})

test("only a file's exact path is an exception [report: secrets in snapshots]", () => {
  const text =
    '*\n!/workspace/a.pem\r\n!tests/b.key  \n!.env\n!*.pem\n!/workspace/\n!workspace/**\n!/c[1].pem\n#!/d.pem\n'
  assert.deepEqual(exceptionsIn(text), ['workspace/a.pem', 'tests/b.key'])
  const confidential = new Confidential(['value-of-a-secret'], ['workspace/a.pem'])
  assert.equal(confidential.byName('workspace/a.pem'), undefined)
  assert.notEqual(confidential.byName('a.pem'), undefined)
  const key = { reason: 'it has a private key', excusable: true }
  assert.equal(confidential.byContent('workspace/a.pem', key), undefined)
  assert.equal(
    confidential.byContent('b', key),
    'it has a private key; the line !/b in .gitignore lets it in',
  )
  const value = { reason: 'it has a value', excusable: false }
  assert.equal(confidential.byContent('workspace/a.pem', value), 'it has a value')
  assert.match(confidential.byName('value-of-a-secret.md') ?? '', /its name has the value/)
})
