import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { openSummed } from './adler32.ts'

const MOST = 100_000

for (const isQuick of [true, false])
  test(`zlib has the same checksums, ${isQuick ? 'with' : 'without'} vectors`, () => {
    const { memory, adler32 } = openSummed(MOST + 7, isQuick)
    for (const bytes of [randomBytes(MOST), Buffer.alloc(MOST, 255), Buffer.alloc(MOST)])
      for (const size of [0, 1, 15, 16, 17, 5535, 5536, 5537, 5552, 11_072, 65_535, MOST]) {
        const part = bytes.subarray(0, size)
        part.copy(memory, 7)
        const half = 7 + (size >> 1)
        const sum = adler32(half, 7 + size, adler32(7, half, 1))
        assert.equal(sum, deflateSync(part, { level: 0 }).subarray(-4).readUInt32BE(), `${size} bytes`)
      }
  })
