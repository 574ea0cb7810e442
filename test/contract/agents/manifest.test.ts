/** The published schema of manifest.json; `agentd` tests the rules. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { openContext } from '../context.ts'

const { anonymous } = await openContext()

describe('the schema of manifest.json', () => {
  it('the schema of manifest.json is public, and the same as in the docs', async () => {
    const { status, headers, body } = await anonymous.get('/schemas/manifest.v1.json')
    assert.equal(status, 200)
    assert.equal(headers.get('access-control-allow-origin'), '*')
    const documented = await readFile(new URL('../../../docs/manifest.v1.json', import.meta.url), 'utf8')
    assert.deepEqual(body, JSON.parse(documented))
  })
  it('the schema of manifest.json is a JSON Schema that locates errors', async () => {
    const { body } = await anonymous.get('/schemas/manifest.v1.json')
    const check = new Ajv2020({ strict: false }).compile(body)
    assert.ok(check({ version: 1, agent: { name: 'Tomte' } }))
    assert.ok(!check({ version: 1, agent: { name: 'Tomte' }, routes: [{ port: 80, path: '/' }] }))
    assert.equal(check.errors?.[0]?.instancePath, '/routes/0/port')
  })
})
