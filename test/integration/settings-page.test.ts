import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { settingsPage } from '../../scripts/settings.ts'
import { settings } from '../../src/settings.ts'

it('docs/settings.md is what `npm run docs:settings` writes', () => {
  const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8')
  assert.equal(page, settingsPage())
})

it('every setting has a description', () => {
  const silent = Object.entries(settings.shape).filter(([, setting]) => !setting.description)
  assert.deepEqual(
    silent.map(([name]) => name),
    [],
  )
})
