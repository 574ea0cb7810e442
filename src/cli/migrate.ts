/** `berth migrate`: brings the schema up to date, or reports what that would do. */
import { migrate } from '../db/migrate.ts'
import { type LockMode, planMigrations, type TableLock } from '../db/migrate-plan.ts'
import { formatBytes } from '../lib/disk.ts'
import { withDatabase } from './database.ts'

/** @param options.check only reports pending migrations; the exit code is 1 if there are any. */
export function runMigrate(options: { check?: boolean }): Promise<void> {
  return withDatabase(
    async ({ pool }) => {
      if (options.check) return print(await planMigrations(pool))
      const applied = await migrate(pool, {
        onHeldUp: (name) => console.log(`${name} waits until others let it have its tables`),
      })
      console.log(applied.length > 0 ? `applied ${applied.join(', ')}` : 'the schema is up to date')
    },
    { schema: 'any', creates: !options.check },
  )
}

function print(planned: Awaited<ReturnType<typeof planMigrations>>): void {
  for (const { name, title, needs, locks } of planned) {
    console.log(`${name}: ${title}`)
    if (needs) console.log(`  only Berth ${needs} or later can use the schema behind it`)
    for (const lock of locks) console.log(`  ${describe(lock)}`)
  }
  const { length } = planned
  const count = length === 1 ? '1 migration' : `${length} migrations`
  console.log(length > 0 ? `${count} to apply` : 'the schema is up to date')
  if (length > 0) process.exitCode = 1
}

const STOPS: Record<LockMode, string> = {
  'ACCESS EXCLUSIVE': 'stops reads and writes',
  EXCLUSIVE: 'stops writes',
  'SHARE ROW EXCLUSIVE': 'stops writes',
  SHARE: 'stops writes',
  'SHARE UPDATE EXCLUSIVE': 'stops neither reads nor writes',
  'ROW EXCLUSIVE': 'changes rows, and stops nothing else',
}

function describe({ table, mode, rows, bytes, isRead, isRewritten }: TableLock): string {
  const size = `${rows.toLocaleString('en')} rows, ${formatBytes(bytes)}`
  const work = isRewritten
    ? 'while all of it is written anew'
    : isRead
      ? 'while all of it is read'
      : 'for a moment'
  return `${mode} on ${table} (${size}): ${STOPS[mode]}, ${work}`
}
