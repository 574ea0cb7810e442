/** `test/support/async-context.ts` changes what tests cost, and nothing else. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

const SUPPORT = join(import.meta.dirname, 'support')

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

test('tests have the same outcomes with the module as without', () => {
  const own = outcomes()
  assert.equal(own.status, 1)
  for (const said of ["error: 'rejected'", "error: 'thrown'", "error: 'not tidy'", '# cancelled 1'])
    assert.ok(own.text.includes(said), `${said} is not in:\n${own.text}`)
  assert.deepEqual(outcomes('--import', join(SUPPORT, 'async-context.ts')), own)
})
