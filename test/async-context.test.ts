/** `test/support/async-context.ts` changes what tests cost, and nothing else that they tell. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

/** Ends with 0 where no promise has an async id, which is what costs. */
const FOLLOWS = `import { executionAsyncId } from 'node:async_hooks'
import { test } from 'node:test'
test('awaits', async () => {
  await null
  if (executionAsyncId() !== 0) process.exitCode = 1
})`
const SUPPORT = join(import.meta.dirname, 'support')
const MODULE = join(SUPPORT, 'async-context.ts')

/** What the runner says of `outcomes.ts`, without places and times. */
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

test('the runner follows no promise by async_hooks with the module', () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const statusWith = (...options: string[]) =>
    spawnSync(process.execPath, [...options, '--input-type=module', '--eval', FOLLOWS], { env }).status
  assert.deepEqual([statusWith(), statusWith('--import', MODULE)], [1, 0])
})

test('tests have the same outcomes with the module as without', () => {
  const own = outcomes()
  assert.equal(own.status, 1)
  for (const said of ["error: 'rejected'", "error: 'thrown'", "error: 'not tidy'", '# cancelled 1'])
    assert.ok(own.text.includes(said), `${said} is not in:\n${own.text}`)
  assert.deepEqual(outcomes('--import', MODULE), own)
})
