import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { jsonLines } from './agentd-stream.ts'

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield Buffer.from(part as string)
}

async function read(maxBytes: number, ...parts: (string | Uint8Array)[]): Promise<unknown[]> {
  const lines: unknown[] = []
  for await (const line of jsonLines(chunks(...parts), maxBytes, z.unknown())) lines.push(line)
  return lines
}

test('lines and characters are assembled from chunks', async () => {
  const text = Buffer.from('{"a":"ü"}\n\n[1]\n"end"')
  const bytes = [...text].map((byte) => Uint8Array.of(byte))
  assert.deepEqual(await read(100, ...bytes), [{ a: 'ü' }, [1], 'end'])
})

test('a line that is not JSON is refused', async () => {
  await assert.rejects(read(100, '{"a":1}\nnot so\n'), { code: 'bad_answer' })
})

test('a line without an end is not kept forever', async () => {
  await assert.rejects(read(10, '"', 'aaaaaaaa', 'aaaaaaaa'), { code: 'bad_answer' })
})
