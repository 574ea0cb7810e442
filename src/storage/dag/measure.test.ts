import assert from 'node:assert/strict'
import { it } from 'node:test'
import { mimeTypeOf } from './measure.ts'

const told: [content: string | number[], type: string][] = [
  ['BMI,age\n22,30\n', 'text/plain'],
  ['MZ, a province\n', 'text/plain'],
  ['GIF89a is a format\n', 'text/plain'],
  [[0, 0], 'application/octet-stream'],
  [[0, 1], 'application/octet-stream'],
  [[0, 0, 1], 'application/octet-stream'],
  [[0, 1, 0, 0, 0, 12, 0, 128, 0, 3, 0, 64], 'font/ttf'],
  [[0x42, 0x4d, 0x3a, 0, 0, 0, 0, 0, 0, 0, 0x36, 0, 0, 0], 'image/bmp'],
  ['%PDF-1.7\n', 'application/pdf'],
  ['<?xml version="1.0"?><a/>', 'application/xml'],
  ['BEGIN:VCARD\nVERSION:4.0\n', 'text/vcard'],
]
for (const [content, type] of told)
  it(`the type of ${JSON.stringify(content)} is ${type} [report: content types]`, async () => {
    assert.equal(await mimeTypeOf(Buffer.from(content as string)), type)
  })
