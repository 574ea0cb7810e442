import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UploadPaths } from './paths.ts'

const names = (length: number, name: string) => Array.from({ length }, () => name).join('/')

test('one upload has at most 10,000 folders', () => {
  const paths = new UploadPaths()
  for (let i = 0; i < 160; i++) paths.add(`${i}/${names(62, 'd')}`)
  assert.throws(
    () => {
      for (let i = 160; i < 170; i++) paths.add(`${i}/${names(62, 'd')}`)
    },
    { status: 400, message: 'file: one upload has at most 10000 folders' },
  )
  // Existing folders accept more files.
  const few = new UploadPaths()
  for (let i = 0; i < 10_000; i++) few.add(`${names(62, 'd')}/${i}`)
  assert.equal(few.size, 10_000)
})

test('the paths of one upload have at most 4 MiB in total', () => {
  const paths = new UploadPaths()
  const folder = names(62, 'd'.repeat(63))
  assert.throws(
    () => {
      for (let i = 0; i < 10_000; i++) paths.add(`${folder}/${i}`)
    },
    { status: 400, message: 'file: the paths of one upload have at most 4194304 bytes in all' },
  )
  assert.equal(paths.size, 1056)
})
