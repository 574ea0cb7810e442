/** `tus-js-client`, the client for resumable uploads in browsers and Node, against a Berth. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import * as tus from 'tus-js-client'
import tusPackage from '../../node_modules/tus-js-client/package.json' with { type: 'json' }
import { type Stack, startStack } from '../support/stack.ts'
import { Calls, reportRun } from './report.ts'

const MIB = 1_048_576
const BYTES = randomBytes(5 * MIB)
const calls = new Calls()
let stack: Stack
let key: string
let dir: string

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-tus-'))
  stack = await startStack({ database: 'of the run' })
  key = await stack.createKey()
})
after(async () => {
  await stack?.stop()
  await rm(dir, { recursive: true, force: true })
})

/** An upload with these `options`. @returns the upload and the CID in its last response. */
function run(
  options: Partial<tus.UploadOptions> = {},
  begin: (upload: tus.Upload) => Promise<void> | void = () => {},
): Promise<{ upload: tus.Upload; cid: string | undefined }> {
  return new Promise((resolve, reject) => {
    const upload = new tus.Upload(BYTES, {
      endpoint: `${stack.url}/v3/files`,
      headers: { authorization: `Bearer ${key}` },
      metadata: { filename: 'tus.bin', network: 'public', keyvalues: JSON.stringify({ by: 'tus' }) },
      chunkSize: 2 * MIB,
      retryDelays: null,
      onError: reject,
      onSuccess: ({ lastResponse }) => resolve({ upload, cid: lastResponse.getHeader('upload-cid') }),
      ...options,
    })
    Promise.resolve(begin(upload)).then(() => upload.start(), reject)
  })
}

/** Starts an upload, and aborts it after the first piece. */
function cutOff(options: Partial<tus.UploadOptions> = {}): Promise<tus.Upload> {
  return new Promise((resolve, reject) => {
    const upload: tus.Upload = new tus.Upload(BYTES, {
      endpoint: `${stack.url}/v3/files`,
      headers: { authorization: `Bearer ${key}` },
      metadata: { filename: 'tus.bin', network: 'public' },
      chunkSize: MIB,
      retryDelays: null,
      onError: reject,
      onChunkComplete: () => void upload.abort().then(() => resolve(upload), reject),
      ...options,
    })
    upload.start()
  })
}

const list = async (cid: string | undefined): Promise<any[]> => {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${stack.url}/v3/files/public?cid=${cid}`, { headers })
  return ((await response.json()) as { data: { files: unknown[] } }).data.files
}

test("tus-js-client uploads in chunks, with the file's metadata", async () => {
  const { cid } = await calls.make(() => run())
  const [file] = await list(cid)
  assert.deepEqual([file.name, file.size, file.keyvalues], ['tus.bin', BYTES.length, { by: 'tus' }])
})
test('tus-js-client uploads in one piece, and with the bytes in the creation request', async () => {
  const whole = await calls.make(() => run({ chunkSize: Number.POSITIVE_INFINITY }))
  const atOnce = await calls.make(() => run({ uploadDataDuringCreation: true }))
  assert.deepEqual((await list(whole.cid)).length, 1)
  assert.equal(atOnce.cid, whole.cid)
})
test('tus-js-client resumes an interrupted upload by its URL, and from its own storage', async () => {
  const cut = await calls.make(() => cutOff())
  const sent: number[] = []
  await calls.make(() =>
    run({ uploadUrl: cut.url ?? assert.fail(), onChunkComplete: (size) => sent.push(size) }),
  )
  assert.ok(sent.reduce((sum, size) => sum + size) < BYTES.length)
  // The types are for the browser, which lacks this class.
  const { FileUrlStorage } = tus as unknown as { FileUrlStorage: new (path: string) => tus.UrlStorage }
  const urlStorage = new FileUrlStorage(join(dir, 'uploads.json'))
  const noted = { urlStorage, fingerprint: async () => 'the same file', storeFingerprintForResuming: true }
  const other = await calls.make(() => cutOff(noted))
  const { upload } = await calls.make(() =>
    run(noted, async (again) => {
      const [previous] = await again.findPreviousUploads()
      again.resumeFromPreviousUpload(previous ?? assert.fail())
    }),
  )
  assert.equal(upload.url, other.url)
})
test('tus-js-client terminates an upload, which is then gone', async () => {
  const upload = await calls.make(() => cutOff())
  await calls.make(() => upload.abort(true))
  const gone = run({ uploadUrl: upload.url ?? assert.fail(), endpoint: null as never })
  await calls.make(() => assert.rejects(gone, { message: /response code: (404|410)/ }))
})
test('tus-js-client reports an invalid key', async () => {
  const refused = run({ headers: { authorization: 'Bearer x' } })
  await calls.make(() => assert.rejects(refused, { message: /response code: 401/ }))
})
test('docs/clients.md shows the run of tus-js-client', async () => {
  const { calls: made, passed } = calls
  await reportRun({
    client: '`tus-js-client` of npm',
    version: tusPackage.version,
    calls: made,
    passed,
    leftOut: ['`parallelUploads` and `uploadLengthDeferred`: extensions of tus that Berth does not offer'],
  })
})
