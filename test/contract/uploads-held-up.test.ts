/** Uploads whose last step must wait, for example for a hanging IPFS node: they do not block other requests. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import type { CID } from 'multiformats/cid'
import pg from 'pg'
import { postgresUrl } from '../../src/standalone/postgres.ts'
import { assertError } from '../support/client.ts'
import { openContext } from './context.ts'
import { file, send } from './upload-form.ts'

/** More than a web process has connections. */
const UPLOADS = 12

const { env, provider, workspace } = await openContext()
const { api } = await workspace()
const node = await provider()

it('uploads that wait for a lock block no other requests, and return 503 if it takes too long', async () => {
  const contents = Array.from({ length: UPLOADS }, () => randomBytes(32))
  const holder = new pg.Client(env.DATABASE_URL ?? (await postgresUrl(env.BERTH_DATA_DIR ?? '')) ?? '')
  await holder.connect()
  try {
    for (const content of contents) await lock(holder, await node.file(content))
    let answered = 0
    const uploads = contents.map((content) => send(api, [file(content)]).finally(() => answered++))
    const waiting = `SELECT count(*)::int AS sum FROM pg_locks
      WHERE locktype = 'advisory' AND NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`
    while ((await holder.query(waiting)).rows[0].sum === 0) assert.equal(answered, 0)
    let meanwhile = 0
    for (let round = 0; round < 5; round++) {
      assert.equal((await api.get('/v3/files/private')).status, 200)
      if (answered === 0) meanwhile++
    }
    // On a slow machine, all five requests may take longer than the uploads wait.
    assert.ok(meanwhile > 0)
    assertError(await Promise.race(uploads), 503, 'IPFS node unreachable')
    await holder.query('SELECT pg_advisory_unlock_all()')
    await Promise.all(uploads)
  } finally {
    await holder.end()
  }
})

/** Takes the lock of a CID, like every operation that counts its references. */
const lock = (client: pg.Client, cid: CID) =>
  client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [
    Buffer.from(cid.multihash.bytes).toString('hex'),
  ])
