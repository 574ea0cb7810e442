/** A process that assigns ids to events is killed at every step of a batch. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { CrashPoint } from '../../../src/lib/crash-point.ts'
import { useDatabase } from '../../support/database.ts'
import { useFolder } from '../../support/folder.ts'
import { run, until } from '../../support/processes.ts'

const PROGRAM = fileURLToPath(new URL('sequencer.program.ts', import.meta.url))
const POINTS: CrashPoint[] = ['events-before-fan-out', 'events-before-commit', 'events-after-commit']
const EVENTS = 100

const database = await useDatabase()
const workspaceId = await database.createWorkspace()
const dir = await useFolder('berth-events-')
await database.pool.query('CREATE TABLE followed (id bigint)')
beforeEach(() => database.pool.query('TRUNCATE event_pending, event, followed'))

const start = (env: NodeJS.ProcessEnv = {}) =>
  run(process.execPath, [PROGRAM, database.url], { env: { ...process.env, ...env } })
const note = (from: number, to: number) =>
  database.pool.query(
    `SELECT note_event('file.created', $1, 'file', n::text, '{}') FROM generate_series($2::int, $3::int) n`,
    [workspaceId, from, to],
  )
const published = async () =>
  (
    await database.pool.query<{ id: string; name: number }>(
      'SELECT id::text, resource_id::int AS name FROM event ORDER BY id',
    )
  ).rows

describe('a killed sequencer', () => {
  for (const point of POINTS)
    it(`a sequencer killed at ${point} publishes each event once, with its fan-out`, async () => {
      await note(1, EVENTS)
      const killed = start({ BERTH_CRASH_AT: `${point}@${join(dir, point)}` })
      await until('it is killed', () => killed.process.signalCode === 'SIGKILL')
      const next = start()
      try {
        await note(EVENTS + 1, 2 * EVENTS)
        await until('all are published', async () => (await published()).length === 2 * EVENTS)
        const events = await published()
        assert.deepEqual(
          events.map(({ name }) => name),
          Array.from({ length: 2 * EVENTS }, (_, i) => i + 1),
        )
        const { rows } = await database.pool.query<{ id: string }>(
          'SELECT id::text FROM followed ORDER BY followed.id',
        )
        assert.deepEqual(
          rows.map(({ id }) => id),
          events.map(({ id }) => id),
        )
      } finally {
        await next.end()
      }
    })
})
