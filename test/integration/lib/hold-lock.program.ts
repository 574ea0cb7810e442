/** Tries to take a lock, prints whether it got it, and stays. */
import { AlreadyRunning, acquireLock } from '../../../src/lib/process/process-lock.ts'

try {
  const lock = await acquireLock(String(process.argv[2]))
  process.once('exit', () => lock)
  console.log(JSON.stringify({ held: true }))
} catch (error) {
  if (!(error instanceof AlreadyRunning)) throw error
  console.log(JSON.stringify({ held: false, by: error.holder.pid }))
}
process.stdin.resume()
