import assert from 'node:assert/strict'
import fs from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import type { Request } from 'express'
import { useFolder } from '../../../test/support/folder.ts'
import { BytesInFolder } from './tus-folder.ts'
import { writePiece } from './tus-write.ts'

test('a piece that ends early returns only after its last write', async (t) => {
  const dir = await useFolder('berth-piece-', t)
  const path = join(dir, 'upload')
  await writeFile(path, '')
  const { write } = fs
  const yields = new AbortController()
  t.mock.method(fs, 'write', (...args: Parameters<typeof write>) => {
    yields.abort(new Error('another request wants the upload'))
    setTimeout(() => write(...args), 200)
  })
  const headers = { 'content-length': '10' }
  const req = Object.assign(new PassThrough(), { headers, setTimeout() {} })
  const disk = { admit: async () => {} }
  const services = { pool: {}, reservations: {}, disk, bytes: new BytesInFolder(dir) } as never
  const uploader = { workspaceId: 'w', plan: { storageBytes: null } }
  const upload = { id: 'upload', length: 10, uploader, counted: 0, lease: 'l' } as never
  const piece = writePiece(services, req as unknown as Request, upload, 0, [yields.signal])
  req.write('12345')
  await assert.rejects(piece, { status: 503 })
  assert.equal(await readFile(path, 'utf8'), '12345')
})
