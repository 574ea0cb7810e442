import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { useFolder } from '../../test/support/folder.ts'
import { nodeObstacle, readNodeRange } from './node-range.ts'

const TWO_LINES = '>=24.22.1 <25 || >=26.12.1'
const obstacle = (range?: string, node?: string) => nodeObstacle('2026.10.6', { range, node })

test('an engine runs only on versions of Node within its range', () => {
  for (const node of ['24.22.1', '24.30.0', '26.12.1', '27.0.0', '27.0.0-nightly20261101abcdef'])
    assert.equal(obstacle(TWO_LINES, node), null, node)
  for (const node of ['22.21.0', '24.21.0', '24.22.0', '24.22.1-rc.1', '25.9.0', '26.12.0'])
    assert.ok(obstacle(TWO_LINES, node), node)
  assert.equal(obstacle('^22.14 || >=24', '22.20.0'), null)
  assert.equal(obstacle('^22.14 || >=24', '24.0.0'), null)
  assert.ok(obstacle('^22.14 || >=24', '23.11.0'))
})

test('the obstacle names the Node that the engine needs, and the one it has', () => {
  assert.equal(
    obstacle(TWO_LINES, '24.21.0'),
    'OpenClaw 2026.10.6 needs Node >=24.22.1 <25 || >=26.12.1, and would run on Node 24.21.0',
  )
})

test('an engine with an unknown range or Node counts as runnable', () => {
  for (const range of [undefined, '', '*', 'the newest one']) assert.equal(obstacle(range, '24.21.0'), null)
  for (const node of [undefined, '', 'unknown']) assert.equal(obstacle(TWO_LINES, node), null)
})

test('the range of an installed engine is read from its package', async (t) => {
  const folder = await useFolder('berth-engine-', t)
  assert.equal(await readNodeRange(folder), '')
  const engine = join(folder, 'node_modules/openclaw')
  await mkdir(engine, { recursive: true })
  for (const [text, range] of [
    ['{}', ''],
    ['{ "engines": { "node": 24 } }', ''],
    [`{ "engines": { "node": "${TWO_LINES}" } }`, TWO_LINES],
  ] as const) {
    await writeFile(join(engine, 'package.json'), text)
    assert.equal(await readNodeRange(folder), range)
  }
})
