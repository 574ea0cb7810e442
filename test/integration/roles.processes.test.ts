/** Roles that cannot start, or only in part: what they report, and whether a restart can help. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import packageJson from '../../package.json' with { type: 'json' }
import { useDatabase } from '../support/database.ts'
import { useFolder } from '../support/folder.ts'
import { freePort, run, until } from '../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

describe('without PostgreSQL', () => {
  for (const role of ['web', 'worker', 'prepare'])
    it(`${role} without PostgreSQL reports it in one line, and exits so that a supervisor restarts it`, async () => {
      const DATABASE_URL = `postgres://berth:hunter2@127.0.0.1:${await freePort()}/berth`
      const started = run(process.execPath, [MAIN, role], { env: { PATH: process.env.PATH, DATABASE_URL } })
      const [code] = await once(started.process, 'close', { signal: AbortSignal.timeout(180_000) })
      assert.match(started.output(), /^DATABASE_URL: PostgreSQL cannot be reached: .*ECONNREFUSED.*\n$/)
      assert.equal(code, 1)
    })
})

const database = await useDatabase()
const dir = await useFolder('berth-roles-')
const env = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  DATABASE_URL: database.url,
  BERTH_DATA_DIR: dir,
  BERTH_RUNTIME: 'process',
  BERTH_IPFS_ROUTING_URL: '',
}

describe('on the schema of another version', () => {
  beforeEach(() => database.pool.query(`DELETE FROM _prisma_migrations WHERE migration_name = '9999_next'`))

  /** A migration of the next version has been applied. */
  const applyNext = (needs: string | null) =>
    database.pool.query(
      `INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, logs)
       VALUES ('next', 'x', now(), '9999_next', 'needs ' || $1::text)`,
      [needs],
    )
  const startRole = (role: string, port = 0) =>
    run(process.execPath, [MAIN, role], {
      env: { ...env, [role === 'web' ? 'PORT' : 'BERTH_HEALTH_PORT']: `${port}` },
    })

  for (const role of ['web', 'worker']) {
    it(`${role} logs in one line that it uses a newer schema, and starts`, async () => {
      await applyNext(null)
      const port = await freePort()
      const started = startRole(role, port)
      try {
        // On a busy machine, a part that does not answer in time is down for a moment.
        await until('it reports the schema as degraded', async () => {
          const answer = await fetch(`http://127.0.0.1:${port}/readyz`)
          const { parts } = (await answer.json()) as { parts: Record<string, { status: string }> }
          return parts.schema?.status === 'degraded'
        })
      } finally {
        await started.end()
      }
      const lines = started
        .output()
        .split('\n')
        .filter((line) => line.includes('the schema is newer'))
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).migrations),
        [['9999_next']],
      )
    })

    it(`${role} rejects a schema that needs a newer version, and names the version`, async () => {
      await applyNext('99.0.0')
      const started = startRole(role)
      const [code] = await once(started.process, 'close', { signal: AbortSignal.timeout(120_000) })
      assert.equal(
        started.output(),
        `DATABASE_URL: the schema needs Berth 99.0.0 or later (migration 9999_next); this is ${packageJson.version}\n`,
      )
      assert.equal(code, 78)
    })

    it(`${role} rejects an older schema, and names the command to run`, async () => {
      const { rows } = await database.pool.query<{ migration_name: string }>(
        'SELECT max(migration_name) AS migration_name FROM _prisma_migrations',
      )
      const hide = (was: string, becomes: string) =>
        database.pool.query('UPDATE _prisma_migrations SET migration_name = $2 WHERE migration_name = $1', [
          was,
          becomes,
        ])
      const last = rows[0]?.migration_name ?? ''
      await hide(last, '0000_hidden')
      const started = startRole(role)
      const [code] = await once(started.process, 'close', { signal: AbortSignal.timeout(120_000) })
      await hide('0000_hidden', last)
      assert.equal(started.output(), 'DATABASE_URL: the schema is not up to date; run `npx berth migrate`\n')
      assert.equal(code, 78)
    })
  }
})
