/** The limits of an upload form: a stalled side ends it, and it stays ended. */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it, mock } from 'node:test'
import type { Request } from 'express'
import { ApiError } from '../../../src/errors.ts'
import { type FormFile, UploadForm } from '../../../src/files/uploads/form.ts'
import { CONTENT_TYPE, encodeForm, file } from '../../contract/upload-form.ts'
import { until } from '../../support/processes.ts'

const MINUTE = 60_000
const ABSENT = new AbortController().signal

/** A request whose body the test writes. */
function openForm(gone = ABSENT) {
  const body = Object.assign(new PassThrough(), { headers: { 'content-type': CONTENT_TYPE } })
  return { body, form: new UploadForm(body as unknown as Request, gone) }
}
const firstFile = async (form: UploadForm) => (await form.parts().next()).value as FormFile
const begin = (bytes: number) => encodeForm([file(Buffer.alloc(bytes), 'a')], { open: true })
const reasonOf = ({ signal }: UploadForm) => {
  assert.ok(signal.reason instanceof ApiError, `${signal.reason}`)
  return [signal.reason.status, signal.reason.message]
}

describe('an upload form', () => {
  it('an upload form ends after a minute without data from the client, and not earlier', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const { body, form } = openForm()
    body.write(begin(10))
    const { content } = await firstFile(form)
    const reading = content.toArray()
    mock.timers.tick(MINUTE - 1)
    body.write('more')
    await new Promise(setImmediate)
    mock.timers.tick(MINUTE - 1)
    assert.ok(!form.signal.aborted)
    mock.timers.tick(1)
    assert.deepEqual(reasonOf(form), [408, 'body: nothing arrived for 60 seconds'])
    await assert.rejects(reading, form.signal.reason)
    form.close()
  })
  it('an upload form fails with 503 if the store accepts nothing', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const { body, form } = openForm()
    body.write(begin(4 * 2 ** 20))
    const { content } = await firstFile(form)
    await new Promise(setImmediate)
    mock.timers.tick(MINUTE)
    assert.deepEqual(reasonOf(form), [503, 'IPFS node unreachable'])
    await assert.rejects(content.toArray(), form.signal.reason)
  })
  it('an upload form of many small files is read no faster than they are consumed', async (t) => {
    const { body, form } = openForm()
    t.after(() => form.close())
    const files = Array.from({ length: 500 }, (_, i) => file(Buffer.alloc(10_000), `${i}`))
    const bytes = encodeForm(files)
    for (let at = 0; at < bytes.length; at += 65_536) body.write(bytes.subarray(at, at + 65_536))
    body.end()
    const parts = form.parts()
    const { content } = (await parts.next()).value as FormFile
    await until('the form waits', async () => body.isPaused())
    const waiting = () => body.readableLength + body.writableLength
    assert.ok(waiting() > 4_000_000, `${waiting()} of 5,000,000 bytes wait`)
    await content.toArray()
    let taken = 1
    for await (const part of parts) {
      await (part as FormFile).content.toArray()
      if (++taken === 250) assert.ok(waiting() > 2_000_000, `${waiting()} of 5,000,000 bytes wait`)
    }
    assert.equal(taken, 500)
  })
  it('an upload form stays open while its files are consumed, however early it arrived', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const { body, form } = openForm()
    body.end(encodeForm(Array.from({ length: 5 }, (_, i) => file(Buffer.alloc(10), `${i}`))))
    let taken = 0
    for await (const part of form.parts()) {
      mock.timers.tick(MINUTE - 1)
      await (part as FormFile).content.toArray()
      taken++
    }
    assert.equal(taken, 5)
    form.close()
  })
  it('an upload form fails with 503 if the store does not consume a complete form', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const { body, form } = openForm()
    body.end(encodeForm([file(Buffer.alloc(10), 'a')]))
    await firstFile(form)
    await new Promise(setImmediate)
    assert.ok(body.readableEnded)
    mock.timers.tick(MINUTE)
    assert.deepEqual(reasonOf(form), [503, 'IPFS node unreachable'])
  })
  it('an upload form ends for all its readers when the client leaves', async () => {
    const gone = new AbortController()
    const { body, form } = openForm(gone.signal)
    body.write(begin(10))
    const parts = form.parts()
    const { content } = (await parts.next()).value as FormFile
    const waiting = [content.toArray(), parts.next()]
    gone.abort()
    for (const each of waiting) await assert.rejects(each, form.signal.reason)
    assert.deepEqual(reasonOf(form), [400, 'body: cut off'])
  })
  it('an upload form keeps its first error', () => {
    const { form } = openForm()
    form.fail(new ApiError(413, 'a', 'first'))
    form.fail(new ApiError(400, 'b', 'second'))
    assert.deepEqual(reasonOf(form), [413, 'first'])
  })
  it('an upload form discards the rest after its end, so that the client can continue', async () => {
    const { body, form } = openForm()
    body.write(begin(10))
    await firstFile(form)
    form.fail(new ApiError(413, 'a', 'enough'))
    for (let i = 0; i < 50; i++) body.write(Buffer.alloc(2 ** 20))
    await until('all of it is read', async () => body.readableLength + body.writableLength === 0)
  })
  it('an upload form is read no faster than its files are read', async () => {
    const { body, form } = openForm()
    body.write(begin(10))
    const { content } = await firstFile(form)
    let written = 0
    while (body.write(Buffer.alloc(64 * 1024)) && written < 64 * 2 ** 20) {
      written += 64 * 1024
      await new Promise(setImmediate)
    }
    assert.ok(written < 2 ** 20, `${written} bytes went in`)
    content.resume()
    await until('it continues', async () => body.writableLength === 0)
    form.close()
  })
})
