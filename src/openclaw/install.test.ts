import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareVersions, engineFolder, isEngineVersion, thisPlatform } from './install.ts'

test('versions are ordered by numbers, not by letters', () => {
  const sorted = ['2026.10.1', '2026.9.33', '2026.9.5', '2027.1.1', '2026.9.6'].sort(compareVersions)
  assert.deepEqual(sorted, ['2026.9.5', '2026.9.6', '2026.9.33', '2026.10.1', '2027.1.1'])
})

test('only a version can get into a path or a command', () => {
  for (const text of [
    'latest',
    '',
    '../2026.9.6',
    '2026.9.6/..',
    '2026.9.6 --registry=x',
    '2026.9.6\n',
    '-1',
    '2026.9.6;id',
  ]) {
    assert.ok(!isEngineVersion(text), text)
    assert.throws(() => engineFolder('/engines', text), { code: 'no_image' })
  }
  assert.ok(isEngineVersion('2026.10.33'))
})

test('an installation for another platform has its own folder', () => {
  const here = thisPlatform()
  assert.equal(engineFolder('/engines', '2026.9.6'), '/engines/2026.9.6')
  const other = { ...here, cpu: here.cpu === 'x64' ? 'arm64' : 'x64' }
  assert.notEqual(engineFolder('/engines', '2026.9.6', other), '/engines/2026.9.6')
})
