/** The bytes of unfinished uploads, on each of their stores. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { createPrisma } from '../../../src/db/prisma.ts'
import { BytesInBucket } from '../../../src/files/uploads/tus-bucket.ts'
import type { HeldUpload, UploadBytes } from '../../../src/files/uploads/tus-bytes.ts'
import { BytesInFolder } from '../../../src/files/uploads/tus-folder.ts'
import { removeAbandonedUploads } from '../../../src/files/uploads/tus-rows.ts'
import { StorageError } from '../../../src/storage/port.ts'
import { useDatabase } from '../../support/database.ts'
import { useFolder } from '../../support/folder.ts'
import { startS3, withoutS3 } from '../../support/s3.ts'

const MIB = 1_048_576
const { pool, createWorkspace } = await useDatabase()
const prisma = createPrisma(pool)
const workspaceId = await createWorkspace()
const keyId = uuidv7()
await pool.query(
  `INSERT INTO api_key (id, workspace_id, name, public_key, secret_hash, scopes) VALUES ($1, $2, 'k', 'k', '', '{}')`,
  [keyId, workspaceId],
)

/** A new upload that a request holds. */
async function hold(bytes: UploadBytes): Promise<HeldUpload> {
  const upload = { id: uuidv7(), lease: randomUUID() }
  await pool.query(
    `INSERT INTO upload (id, workspace_id, key_id, token_hash, length, metadata, details, lease_id, expires_at)
     VALUES ($1, $2, $3, '', 1, '', '{}', $4, now() + interval '1 hour')`,
    [upload.id, workspaceId, keyId, upload.lease],
  )
  await bytes.create(upload.id)
  return upload
}

async function* inChunks(content: Buffer, failure?: Error): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += 65_536) yield content.subarray(at, at + 65_536)
  if (failure) throw failure
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

function contract(open: () => Promise<UploadBytes>) {
  it('pieces of any size are read as one', async () => {
    const bytes = await open()
    const upload = await hold(bytes)
    const content = randomBytes(9 * MIB + 17)
    assert.equal(await bytes.count(upload.id), 0)
    let at = 0
    for (const end of [1, 5 * MIB, 5 * MIB, 5 * MIB + 1, content.length]) {
      await bytes.append(upload, at, inChunks(content.subarray(at, end)))
      assert.equal(await bytes.count(upload.id), end)
      at = end
    }
    assert.ok((await readAll(bytes.read(upload.id, at))).equals(content))
  })

  it('a piece that breaks off leaves what had arrived', async () => {
    const bytes = await open()
    const upload = await hold(bytes)
    const content = randomBytes(100_000)
    const cut = new Error('cut off')
    await assert.rejects(bytes.append(upload, 0, inChunks(content, cut)), cut)
    const size = (await bytes.count(upload.id)) ?? 0
    assert.ok(content.subarray(0, size).equals(await readAll(bytes.read(upload.id, size))))
    assert.ok(size > 0)
  })

  it('bytes can be dropped from the middle of a part, and sent again', async () => {
    const bytes = await open()
    const upload = await hold(bytes)
    const [first, second, third] = ['a', 'b', 'c'].map((letter) => Buffer.alloc(1000, letter))
    await bytes.append(upload, 0, inChunks(first as Buffer))
    await bytes.append(upload, 1000, inChunks(second as Buffer))
    await bytes.cut(upload, 400)
    assert.equal(await bytes.count(upload.id), 400)
    await bytes.append(upload, 400, inChunks(third as Buffer))
    const now = `${'a'.repeat(400)}${'c'.repeat(1000)}`
    assert.equal(`${await readAll(bytes.read(upload.id, 1400))}`, now)
    await bytes.cut(upload, 0)
    assert.equal(await bytes.count(upload.id), 0)
  })

  it('the loop removes bytes of uploads that ended, have expired or have no row', async () => {
    const bytes = await open()
    const [open_, expired, ended, lost] = await Promise.all(Array.from({ length: 4 }, () => hold(bytes)))
    for (const upload of [open_, expired, ended, lost])
      await bytes.append(upload as HeldUpload, 0, inChunks(randomBytes(10)))
    await pool.query(`UPDATE upload SET expires_at = now() WHERE id = $1`, [expired?.id])
    await pool.query(`UPDATE upload SET cid = 'cid', file_id = $1 WHERE id = $1`, [ended?.id])
    await pool.query(`DELETE FROM upload WHERE id = $1`, [lost?.id])
    await removeAbandonedUploads({ pool, prisma }, bytes, new AbortController().signal)
    const left: string[] = []
    for await (const ids of bytes.list()) left.push(...ids)
    assert.ok(left.includes(open_?.id as string))
    for (const gone of [expired, ended, lost]) assert.ok(!left.includes(gone?.id as string))
  })
}

describe('bytes of uploads in a folder', async () => {
  const dir = await useFolder('berth-bytes-')
  contract(async () => new BytesInFolder(dir))
})

describe('bytes of uploads in a bucket', { skip: withoutS3 }, async () => {
  if (withoutS3) return
  const s3 = await startS3()
  after(() => s3.stop())
  Object.assign(process.env, s3.env)
  const folder = await s3.createBucket('uploads')
  const open = async () =>
    new BytesInBucket({ bucket: 'uploads', prefix: 'of/berth/', pathStyle: true, pool })
  const objectsOf = (id: string) => readdir(join(folder, 'of/berth', id)).catch(() => [])

  contract(open)

  it('a request that has lost its lease adds nothing, and drops nothing', async () => {
    const bytes = await open()
    const upload = await hold(bytes)
    await bytes.append(upload, 0, inChunks(Buffer.from('whole')))
    const late = { ...upload, lease: randomUUID() }
    await assert.rejects(bytes.append(late, 5, inChunks(Buffer.from(' and more'))), { status: 423 })
    await bytes.cut(late, 2)
    assert.equal(await bytes.count(upload.id), 5)
    assert.equal((await objectsOf(upload.id)).length, 2)
    await bytes.remove(upload.id)
    assert.deepEqual(await objectsOf(upload.id), [])
  })

  it('parts have 4 MiB, and less while many requests send', async () => {
    const bytes = await open()
    const alone = await hold(bytes)
    await bytes.append(alone, 0, inChunks(Buffer.alloc(9 * MIB)))
    const sizesOf = async ({ id }: HeldUpload) =>
      (
        await pool.query<{ bytes: number }>(
          'SELECT bytes FROM upload_part WHERE upload_id = $1 ORDER BY at',
          [id],
        )
      ).rows.map((row) => row.bytes)
    assert.deepEqual(await sizesOf(alone), [4 * MIB, 4 * MIB, MIB])
    const many = await Promise.all(Array.from({ length: 64 }, () => hold(bytes)))
    const all = Promise.withResolvers<void>()
    let begun = 0
    await Promise.all(
      many.map((upload) =>
        bytes.append(
          upload,
          0,
          (async function* () {
            yield Buffer.alloc(10)
            if (++begun === many.length) all.resolve()
            await all.promise
            yield* inChunks(Buffer.alloc(MIB + 65_536))
          })(),
        ),
      ),
    )
    assert.ok((await sizesOf(many[0] as HeldUpload)).every((size) => size <= MIB + 65_536))
  })

  it('an upload whose objects are gone is lost, and one whose server is away is not', async () => {
    const bytes = await open()
    const [gone, away] = [await hold(bytes), await hold(bytes)]
    for (const upload of [gone, away]) await bytes.append(upload, 0, inChunks(Buffer.from('whole')))
    await rm(join(folder, 'of/berth', gone.id), { recursive: true })
    await assert.rejects(readAll(bytes.read(gone.id, 5)), { status: 410 })
    await s3.kill()
    assert.equal(await bytes.count(away.id), 5)
    await assert.rejects(
      readAll(bytes.read(away.id, 5)),
      (error) => error instanceof StorageError && error.isAway,
    )
  })
})
