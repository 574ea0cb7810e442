import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { readModels } from '../../scripts/schema/model.ts'
import { dataPage } from '../../scripts/schema/page.ts'

it('docs/data.md is what `npm run docs:data` writes', () => {
  const page = readFileSync(new URL('../../docs/data.md', import.meta.url), 'utf8')
  assert.equal(page, dataPage())
})

it('every model describes what a row is', () => {
  const silent = readModels().filter(({ documentation }) => !documentation)
  assert.deepEqual(
    silent.map(({ name }) => name),
    [],
  )
})
