import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { readLines } from './lines.ts'

async function linesOf(...chunks: (string | Buffer)[]): Promise<string[]> {
  const stream = new PassThrough()
  const lines: string[] = []
  readLines(stream, (line) => lines.push(line))
  for (const chunk of chunks) stream.write(chunk)
  stream.end()
  await once(stream, 'end')
  return lines
}

test('lines are extracted from chunks, wherever those begin', async () => {
  assert.deepEqual(await linesOf('one\ntw', 'o\r\n', '\n', 'last'), ['one', 'two', 'last'])
})

test('a character split across two chunks stays whole', async () => {
  const text = Buffer.from('grün\n')
  assert.deepEqual(await linesOf(text.subarray(0, 3), text.subarray(3)), ['grün'])
})

test('a line without an end is cut, and the next one is whole', async () => {
  const lines = await linesOf(...Array(64).fill('x'.repeat(10_000)), '\nnext\n')
  assert.deepEqual(
    lines.map((line) => line.length),
    [65_536, 4],
  )
})

test('a flood of lines costs no memory, and is reported', async () => {
  const flood = 500_000_000
  const program = `yes "a line of a flood" | head -c ${flood}; echo; while read go; do echo the end; done`
  const child = spawn('sh', ['-c', program])
  let count = 0
  const told: string[] = []
  readLines(child.stdout, (line) => {
    count++
    if (!line.startsWith('a line')) told.push(line)
  })
  let bytes = 0
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  const before = process.memoryUsage().rss
  while (bytes <= flood) await once(child.stdout, 'data')
  const grown = process.memoryUsage().rss - before
  assert.ok(grown < 250_000_000, `${grown} bytes more for a flood of ${flood}`)
  // Lines written right after the flood are dropped as well, for less than a second.
  while (told.at(-1) !== 'the end') {
    child.stdin.write('go\n')
    await once(child.stdout, 'data')
  }
  child.stdin.end()
  await once(child, 'close')
  assert.ok(count < 1_000_000, `${count} of 25 million lines were read`)
  assert.match(told.join('\n'), /bytes of output were left out/)
})
