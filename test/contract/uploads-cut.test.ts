/** Interrupted uploads: nothing of them remains, and they do not affect other uploads. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { until } from '../support/processes.ts'
import { openContext } from './context.ts'
import { CONTENT_TYPE, encodeForm, file, type Part, upload } from './upload-form.ts'

const { env, isPinned, provider, workspace } = await openContext()
const { api } = await workspace()
const node = await provider()
const MIB = 2 ** 20
const PUBLIC: Part = ['network', 'public']

/** Sends the bytes of an incomplete form, and then closes the connection. */
function breakOff(bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const sending = request(`${api.url}/v3/files`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${api.key}`,
        'content-type': CONTENT_TYPE,
        'content-length': bytes.length + 100,
      },
    })
    sending.on('error', () => resolve())
    sending.write(bytes, () => sending.destroy(new Error('the client dies')))
  })
}

describe('an interrupted upload', () => {
  const cuts: [string, (bytes: Uint8Array) => Part[]][] = [
    ['on its way into the store', (bytes) => [PUBLIC, file(bytes, 'a')]],
    ['before its network field', (bytes) => [file(bytes, 'a')]],
    ['after its file', (bytes) => [file(bytes, 'a'), PUBLIC]],
    ['in a folder', (bytes) => [PUBLIC, file(bytes, 'f/a'), file(bytes, 'f/b')]],
  ]
  for (const [when, parts] of cuts) {
    it(`an upload interrupted ${when} leaves neither a file nor a pin`, async () => {
      const bytes = randomBytes(4 * MIB)
      const cid = await node.file(bytes)
      await breakOff(encodeForm(parts(bytes), { open: true }))
      // Another upload, to give the first one time to do harm.
      const whole = await upload(api, PUBLIC, file(randomBytes(4 * MIB)))
      for (const network of ['public', 'private'] as const) {
        assert.ok(!(await isPinned(cid, network)))
        const { files } = (await api.get(`/v3/files/${network}`, { cid: `${cid}` })).body.data
        assert.deepEqual(files, [])
      }
      assert.equal((await api.get(`/v3/files/public/${whole.id}`)).status, 200)
    })
  }
  it('an interrupted upload leaves nothing on the disk', async () => {
    // Other files of the run upload to the same Berth.
    const spool = join(env.BERTH_DATA_DIR ?? '', 'spool')
    const early = await readdir(spool)
    await until('the earlier spool files are gone', async () => {
      const now = await readdir(spool)
      return !early.some((name) => now.includes(name))
    })
  })
  it('an interrupted upload can be sent again', async () => {
    const bytes = randomBytes(2 * MIB)
    await breakOff(encodeForm([PUBLIC, file(bytes, 'a')], { open: true }))
    const data = await upload(api, PUBLIC, file(bytes, 'a'))
    assert.deepEqual([data.cid, data.is_duplicate], [`${await node.file(bytes)}`, false])
  })
})
