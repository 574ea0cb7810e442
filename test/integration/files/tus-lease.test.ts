import assert from 'node:assert/strict'
import { it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { holdUpload } from '../../../src/files/uploads/tus-lease.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const database = await useDatabase()

it('a disconnected client stops waiting for its upload', async () => {
  const { pool } = database
  const [id, keyId, workspaceId] = [uuidv7(), uuidv7(), await database.createWorkspace()]
  await pool.query(
    `INSERT INTO api_key (id, workspace_id, name, public_key, secret_hash, scopes) VALUES ($1, $2, 'k', 'k', '', '{}')`,
    [keyId, workspaceId],
  )
  await pool.query(
    `INSERT INTO upload (id, workspace_id, key_id, token_hash, length, metadata, details, lease_until, expires_at)
     VALUES ($1, $2, $3, '', 1, '', '{}', now() + interval '1 hour', now() + interval '1 hour')`,
    [id, workspaceId, keyId],
  )
  const gone = new AbortController()
  const held = holdUpload(pool, id, gone.signal, async () => assert.fail('it was not free'))
  const wanted = async () =>
    (await pool.query<{ lease_wanted: boolean }>('SELECT lease_wanted FROM upload WHERE id = $1', [id]))
      .rows[0]?.lease_wanted
  await until('it waits', wanted)
  gone.abort()
  await assert.rejects(held, { status: 423 })
})
