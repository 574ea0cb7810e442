import { migrate } from '../db/migrate.ts'
import { withDatabase } from './database.ts'

export function runMigrate(): Promise<void> {
  return withDatabase(
    async ({ pool }) => {
      const applied = await migrate(pool)
      console.log(applied.length > 0 ? `applied ${applied.join(', ')}` : 'the schema is up to date')
    },
    { schema: 'any' },
  )
}
