/** Resumable uploads with their bytes in S3: none of it is on a disk that web processes share. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { useFolder } from '../support/folder.ts'
import { startForwarder } from '../support/forwarder.ts'
import { freePort } from '../support/processes.ts'
import { startS3, withoutS3 } from '../support/s3.ts'
import { runCli } from '../support/stack.ts'
import { openContext } from './context.ts'
import { begin, bytesOf, head, patch, TUS, upload } from './tus-client.ts'
import { at, interruptedUploads } from './tus-interrupted.ts'
import { startWebProcess } from './web-process.ts'

const MIB = 2 ** 20

describe('resumable uploads in a bucket', { skip: withoutS3 }, async () => {
  if (withoutS3) return
  const context = await openContext()
  const s3 = await startS3()
  after(() => s3.stop())
  const folder = await s3.createBucket('uploads')
  const settings = { ...s3.env, BERTH_UPLOAD_DIR: 's3://uploads/of/berth', BERTH_S3_PATH_STYLE: 'true' }
  const objectsOf = (id: string) => readdir(join(folder, 'of/berth', id)).catch(() => [])
  const { caller, first, second } = await interruptedUploads(context, {
    settings,
    ids: () => readdir(join(folder, 'of/berth')).catch(() => []),
    async read(id) {
      const rows = await context.sql(
        'SELECT bytes, object FROM upload_part WHERE upload_id = $1 ORDER BY at',
        [id],
      )
      const parts = rows.map(async ({ bytes, object }) =>
        (await readFile(join(folder, 'of/berth', id, `${object}`))).subarray(0, Number(bytes)),
      )
      return Buffer.concat(await Promise.all(parts))
    },
    pieceBytes: 5 * MIB,
  })

  for (const [point, offset] of Object.entries({
    'upload-part-before-row': MIB,
    'after-add': 6 * MIB,
    'after-keep': 6 * MIB,
  }))
    it(`a process killed ${point} loses at most a part, and the upload resumes at another process`, async () => {
      const mark = join(await useFolder('berth-marks-'), 'mark')
      const crash = { BERTH_CRASH_AT: `${point}@${mark}` }
      const doomed = await startWebProcess(context.env, { ...settings, ...crash })
      const bytes = bytesOf(point, 6 * MIB)
      const { location, id } = await begin(caller, bytes.length)
      assert.equal((await patch(location, 0, bytes.subarray(0, MIB), TUS)).status, 204)
      await assert.rejects(patch(at(doomed.url, location), MIB, bytes.subarray(MIB), TUS))
      await doomed.running.end()
      assert.ok(existsSync(mark))
      const { headers } = await head(at(second, location))
      assert.equal(headers.get('upload-offset'), `${offset}`)
      const last = await patch(at(second, location), offset, bytes.subarray(offset), TUS)
      assert.equal(last.status, 204, await last.text())
      assert.deepEqual(await objectsOf(id), [])
      assert.equal(last.headers.get('upload-cid'), (await upload(caller, bytes)).cid)
    })

  it('the doctor checks the bucket', async () => {
    const doctor = async (env: NodeJS.ProcessEnv) =>
      (await runCli({ ...context.env, ...settings, ...env }, 'doctor')).stdout
    assert.match(await doctor({}), /✔ Uploads +their bucket answers/)
    const missing = await doctor({ BERTH_UPLOAD_DIR: 's3://missing' })
    assert.match(missing, /✘ Uploads[^\n]+there is no such bucket[^\n]+\n +Check BERTH_UPLOAD_DIR/)
  })

  it('many small pieces by two processes become the file that was sent', async () => {
    const bytes = bytesOf('small pieces', 300_000)
    const { location, id } = await begin(caller, bytes.length)
    for (let offset = 0; offset < 250_000; offset += 10_000) {
      const url = at(offset % 20_000 ? second : first, location)
      assert.equal((await patch(url, offset, bytes.subarray(offset, offset + 10_000), TUS)).status, 204)
    }
    assert.equal((await objectsOf(id)).length, 25)
    const last = await patch(location, 250_000, bytes.subarray(250_000), TUS)
    assert.equal(last.headers.get('upload-cid'), (await upload(caller, bytes)).cid)
  })

  it('while its bucket is away, an upload returns 503 for bytes, and reports its offset', async () => {
    const port = Number(new URL(s3.env.AWS_ENDPOINT_URL_S3 as string).port)
    const way = await startForwarder(port)
    after(() => way.stop())
    const web = await startWebProcess(context.env, {
      ...settings,
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${way.port}`,
    })
    after(() => web.running.end())
    const bytes = bytesOf('away', 2 * MIB)
    const { location } = await begin({ url: web.url, key: caller.key }, bytes.length)
    assert.equal((await patch(location, 0, bytes.subarray(0, MIB), TUS)).status, 204)
    way.lead(await freePort())
    const refused = await patch(location, MIB, bytes.subarray(MIB), TUS)
    assert.deepEqual(
      [refused.status, await refused.json()],
      [503, { error: 'The upload cannot be stored now' }],
    )
    assert.equal((await head(location)).headers.get('upload-offset'), `${MIB}`)
    way.lead(port)
    const last = await patch(location, MIB, bytes.subarray(MIB), TUS)
    assert.equal(last.headers.get('upload-cid'), (await upload(caller, bytes)).cid)
  })
})
