import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { createPrisma } from '../../../src/db/prisma.ts'
import { BytesInFolder } from '../../../src/files/uploads/tus-folder.ts'
import { holdUpload } from '../../../src/files/uploads/tus-lease.ts'
import { removeAbandonedUploads } from '../../../src/files/uploads/tus-rows.ts'
import { useDatabase } from '../../support/database.ts'
import { useFolder } from '../../support/folder.ts'
import { until } from '../../support/processes.ts'

const database = await useDatabase()
const prisma = createPrisma(database.pool)
const dir = await useFolder('berth-uploads-')
const bytes = new BytesInFolder(dir)
const workspaceId = await database.createWorkspace()
const keyId = uuidv7()
await database.pool.query(
  `INSERT INTO api_key (id, workspace_id, name, public_key, secret_hash, scopes) VALUES ($1, $2, 'k', 'k', '', '{}')`,
  [keyId, workspaceId],
)

describe('removing abandoned uploads', () => {
  const { signal } = new AbortController()
  const addUpload = async (columns: Record<string, unknown> = {}) => {
    const row: Record<string, unknown> = {
      id: uuidv7(),
      workspace_id: workspaceId,
      key_id: keyId,
      token_hash: Buffer.alloc(32),
      length: 10,
      metadata: '',
      details: {},
      expires_at: inSeconds(60),
      ...columns,
    }
    const names = Object.keys(row)
    await database.pool.query(
      `INSERT INTO upload (${names}) VALUES (${names.map((_, i) => `$${i + 1}`)})`,
      Object.values(row),
    )
    await writeFile(join(dir, `${row.id}`), 'bytes')
    return `${row.id}`
  }
  const left = async () => {
    const { rows } = await database.pool.query<{ id: string }>('SELECT id FROM upload ORDER BY id')
    return { rows: rows.map(({ id }) => id), files: (await readdir(dir)).sort() }
  }

  it('removing abandoned uploads removes expired uploads that nobody is using, with their bytes', async () => {
    const open = await addUpload()
    await addUpload({ expires_at: inSeconds(-1) })
    await addUpload({ expires_at: inSeconds(-1), lease_until: inSeconds(-1) })
    const busy = await addUpload({ expires_at: inSeconds(-1), lease_until: inSeconds(60) })
    await removeAbandonedUploads({ pool: database.pool, prisma }, bytes, signal)
    assert.deepEqual(await left(), { rows: [open, busy], files: [open, busy] })
    await database.pool.query('DELETE FROM upload')
  })

  it('removing abandoned uploads removes only bytes without an unfinished upload', async () => {
    const open = await addUpload()
    const ended = await addUpload({ cid: 'cid', file_id: uuidv7() })
    const refused = await addUpload({ refusal: { status: 400, code: 'bad_request', message: 'no' } })
    await writeFile(join(dir, uuidv7()), 'left by a process that died')
    await writeFile(join(dir, 'README'), 'not ours')
    await removeAbandonedUploads({ pool: database.pool, prisma }, bytes, signal)
    assert.deepEqual(await left(), { rows: [open, ended, refused], files: [open, 'README'] })
  })

  it('removing abandoned uploads removes signed URLs a day after their expiry', async () => {
    const add = (expires: Date) =>
      database.pool.query(
        `INSERT INTO signed_upload (id, key_id, fixed, expires_at) VALUES ($1, $2, '{}', $3)`,
        [uuidv7(), keyId, expires],
      )
    const day = 86_400
    await add(inSeconds(60 - day))
    await add(inSeconds(-60 - day))
    await removeAbandonedUploads({ pool: database.pool, prisma }, bytes, signal)
    const { rows } = await database.pool.query(
      `SELECT expires_at > now() - interval '1 day' AS young FROM signed_upload`,
    )
    assert.deepEqual(rows, [{ young: true }])
  })
})

it('a disconnected client stops waiting for its upload', async () => {
  const { pool } = database
  const id = uuidv7()
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

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000)
