import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseMigration, readMigrations } from './migrations.ts'

describe('the comment of a migration', () => {
  it('the comment of a migration gives its first sentence as the title', () => {
    const title = (sql: string) => parseMigration('0001_x', sql).title
    assert.equal(
      title('-- What an agent has, so that\n-- it runs. And more.\nSELECT 1;\n'),
      'What an agent has, so that it runs',
    )
    assert.equal(title('-- Names: the words of the glossary\nSELECT 1;'), 'Names')
    assert.equal(title('-- Agents --------\n\nSELECT 1;'), 'Agents')
    assert.equal(title('SELECT 1;\n-- Later.\n'), '')
  })
  it('the comment of a migration declares the version it needs, and why', () => {
    const needs = (sql: string) => parseMigration('0001_x', sql).needs
    assert.equal(
      needs('-- Old things go.\n-- Needs 0.10.2: nothing reads them since.\nDROP TABLE x;'),
      '0.10.2',
    )
    assert.equal(needs('-- Needs 0.10.2\nDROP TABLE x;'), undefined)
    assert.equal(needs('-- It needs 0.10.2: not really.\nSELECT 1;'), undefined)
  })
  it('every published migration has a comment', async () => {
    const bare = (await readMigrations()).filter(({ title }) => title === '')
    assert.deepEqual(
      bare.map(({ name }) => name),
      [],
    )
  })
})
