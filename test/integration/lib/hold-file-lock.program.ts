/** Waits for a file's lock, reports it, and holds it until its input ends. */
import { once } from 'node:events'
import { withLock } from '../../../src/lib/process/file-lock.ts'

const tell = (event: string) => console.log(JSON.stringify({ event, pid: process.pid }))

await withLock(String(process.argv[2]), { onLine: () => tell('waits') }, async () => {
  tell('holds')
  await once(process.stdin.resume(), 'end')
})
