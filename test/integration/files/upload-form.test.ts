/** The bounds of an upload's form: whoever stands still ends it, and what is let go of stays so. */
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

/** A request of which the test writes the body. */
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

describe('a form', () => {
  it('a form ends when the client sends nothing for a minute, and not before', async (t) => {
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
  it('a form is the fault of the store when it is the store that takes nothing', async (t) => {
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
  it('a form of many small files is read no faster than they are taken', async (t) => {
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
  it('a form goes on for as long as files of it are taken, however long ago it came', async (t) => {
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
  it('a form is the fault of the store when it does not take what has come whole', async (t) => {
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
  it('a form ends when the client has gone, for whoever waits for a part or for bytes', async () => {
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
  it('a form keeps its first reason', () => {
    const { form } = openForm()
    form.fail(new ApiError(413, 'a', 'first'))
    form.fail(new ApiError(400, 'b', 'second'))
    assert.deepEqual(reasonOf(form), [413, 'first'])
  })
  it('a form throws away what comes after its end, so that the client can go on', async () => {
    const { body, form } = openForm()
    body.write(begin(10))
    await firstFile(form)
    form.fail(new ApiError(413, 'a', 'enough'))
    for (let i = 0; i < 50; i++) body.write(Buffer.alloc(2 ** 20))
    await until('all of it is read', async () => body.readableLength + body.writableLength === 0)
  })
  it('a form reads no faster than its files are read', async () => {
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
    await until('it goes on', async () => body.writableLength === 0)
    form.close()
  })
})
