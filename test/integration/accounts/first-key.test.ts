import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadConfig } from '../../../src/config.ts'
import { findOrCreateFirstKey } from '../../../src/roles/prepare.ts'
import { useDatabase } from '../../support/database.ts'

const database = await useDatabase()

it('the first workspace and its key are created together or not at all', async () => {
  const { pool, url } = database
  const config = loadConfig({ DATABASE_URL: url, JWT_KEY: 'k'.repeat(32) })
  await pool.query('ALTER TABLE api_key ADD CONSTRAINT none CHECK (false)')
  await assert.rejects(findOrCreateFirstKey(pool, config))
  assert.equal((await pool.query('SELECT FROM workspace')).rowCount, 0)
  await pool.query('ALTER TABLE api_key DROP CONSTRAINT none')
  assert.ok(await findOrCreateFirstKey(pool, config))
  assert.equal(await findOrCreateFirstKey(pool, config), undefined)
})
