import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { readEach } from './read.ts'

test('a stream that closed before it is read', async () => {
  const stream = new PassThrough().destroy()
  await assert.rejects(
    readEach(stream, () => {}),
    /closed before its end/,
  )
})

test('a stream stays open after an error, and the rest can be read', async () => {
  const stream = new PassThrough()
  stream.write('first')
  const taken: string[] = []
  const enough = readEach(stream, (chunk) => {
    taken.push(chunk.toString())
    throw new Error('enough')
  })
  await assert.rejects(enough, /enough/)
  stream.on('data', (chunk) => taken.push(`${chunk}`)).end('second')
  stream.resume()
  await once(stream, 'end')
  assert.deepEqual(taken, ['first', 'second'])
})
