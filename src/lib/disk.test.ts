import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../config.ts'
import { disksOf, placeOfUploads } from './disk.ts'

const blocks = { BERTH_BLOCKS_S3_URL: 's3://blocks/of/berth' }

test('unfinished uploads are next to the blocks in S3, unless their place is set', () => {
  const placeOf = (env: NodeJS.ProcessEnv) => placeOfUploads(loadConfig({ BERTH_DATA_DIR: '/data', ...env }))
  assert.deepEqual(placeOf({}), { dir: '/data/uploads' })
  assert.deepEqual(placeOf(blocks), { bucket: 'blocks', prefix: 'of/berth/uploads/' })
  assert.deepEqual(placeOf({ ...blocks, BERTH_UPLOAD_DIR: '/shared' }), { dir: '/shared' })
  assert.deepEqual(placeOf({ BERTH_UPLOAD_DIR: 's3://parts' }), { bucket: 'parts', prefix: '' })
})

test('uploads in S3 need no room on a disk', () => {
  const foldersOf = (env: NodeJS.ProcessEnv) => Object.keys(disksOf(loadConfig(env), 'web').folders)
  assert.deepEqual(foldersOf({}), ['data', 'blocks', 'spool', 'uploads'])
  assert.deepEqual(foldersOf(blocks), ['data', 'spool'])
})
