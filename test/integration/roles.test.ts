/** Roles that cannot start: what they say, and whether to start them again helps. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePort, run } from '../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

describe('without PostgreSQL', () => {
  for (const role of ['web', 'worker', 'prepare'])
    it(`${role} without PostgreSQL says so in one line, and ends in a way that a supervisor starts it again`, async () => {
      const DATABASE_URL = `postgres://berth:hunter2@127.0.0.1:${await freePort()}/berth`
      const started = run(process.execPath, [MAIN, role], { env: { PATH: process.env.PATH, DATABASE_URL } })
      const [code] = await once(started.process, 'close', { signal: AbortSignal.timeout(180_000) })
      assert.match(started.output(), /^DATABASE_URL: PostgreSQL cannot be reached: .*ECONNREFUSED.*\n$/)
      assert.equal(code, 1)
    })
})
