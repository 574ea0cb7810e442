/** `test/support/async-context.ts` changes the cost of tests, but not their outcomes. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

/** Exits with 0 if promises get no async ids, which are expensive. */
const FOLLOWS = `import { executionAsyncId } from 'node:async_hooks'
import { test } from 'node:test'
test('awaits', async () => {
  await null
  if (executionAsyncId() !== 0) process.exitCode = 1
})`
const SUPPORT = join(import.meta.dirname, 'support')
const MODULE = join(SUPPORT, 'async-context.ts')

/** The runner's output for `outcomes.ts`, without places and times. */
function outcomes(...options: string[]): { status: number | null; text: string } {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = [...options, '--test', '--test-reporter=tap', join(SUPPORT, 'outcomes.ts')]
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
  const text = stdout
    .split('\n')
    .filter((line) => /^ *(ok|not ok|# )|error:|failureType:/.test(line) && !line.includes('duration_ms'))
    .join('\n')
  return { status, text }
}

test('with the module, the runner does not track promises by async_hooks', () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const statusWith = (...options: string[]) =>
    spawnSync(process.execPath, [...options, '--input-type=module', '--eval', FOLLOWS], { env }).status
  assert.deepEqual([statusWith(), statusWith('--import', MODULE)], [1, 0])
})

test('tests have the same outcomes with and without the module', () => {
  const own = outcomes()
  assert.equal(own.status, 1)
  for (const said of ["error: 'rejected'", "error: 'thrown'", "error: 'not tidy'", '# cancelled 1'])
    assert.ok(own.text.includes(said), `${said} is not in:\n${own.text}`)
  assert.deepEqual(outcomes('--import', MODULE), own)
})
