import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engineImageReference, formatReference, parseReference } from './reference.ts'

test('an image name is parsed the way Docker parses it', () => {
  const digest = `sha256:${'a'.repeat(64)}`
  const cases: [text: string, full: string][] = [
    ['node:24-bookworm', 'docker.io/library/node:24-bookworm'],
    ['berth/openclaw', 'docker.io/berth/openclaw:latest'],
    ['localhost/a:1', 'localhost/a:1'],
    ['registry:5000/a/b:1', 'registry:5000/a/b:1'],
    ['registry.example.org/a__b/c-d:1', 'registry.example.org/a__b/c-d:1'],
    ['[::1]:5000/a:1', '[::1]:5000/a:1'],
    [`registry.example.org/a:1@${digest}`, `registry.example.org/a@${digest}`],
  ]
  for (const [text, full] of cases) assert.equal(formatReference(parseReference(text)), full, text)
})

test('an invalid image name is refused', () => {
  for (const text of [
    '',
    'A/b:1',
    'a:',
    'a:-1',
    'a//b:1',
    'a/../b:1',
    'a@sha256:1',
    'a b',
    'x.test/a:1/..',
    'a?b=c:1',
  ])
    assert.throws(() => parseReference(text), /is not an image name/, text)
})

test("an engine image's name contains its version", () => {
  const template = 'registry.example.org/berth/openclaw:v{version}-slim'
  assert.equal(
    engineImageReference(template, '2026.9.6'),
    'registry.example.org/berth/openclaw:v2026.9.6-slim',
  )
  assert.throws(() => engineImageReference(template, '../x'), /is not a version/)
})
