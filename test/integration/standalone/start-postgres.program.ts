/** Starts PostgreSQL on a data folder, prints the result as JSON, and stops the server when standard input closes. */

import { createLogger } from '../../../src/log.ts'
import { startPostgres } from '../../../src/standalone/postgres.ts'

try {
  const dataDir = String(process.argv[2])
  const postgres = await startPostgres({ dataDir, log: createLogger('program', 'silent') })
  process.stdin.on('end', async () => {
    await postgres.stop()
    process.exit(0)
  })
  process.stdin.resume()
  const { url, location, adopted } = postgres
  console.log(JSON.stringify({ url, location, adopted }))
} catch (error) {
  console.error((error as Error).message)
  process.exit(1)
}
