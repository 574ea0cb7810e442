/** Holds a shared lock until it is killed: `hold-shared-lock.program.ts <database URL>`. */
import { SharedLock } from '../../../src/db/shared-lock.ts'

const lock = new SharedLock(process.argv[2] ?? '', 'kuboPublic')
await lock.share(new AbortController().signal, () => {
  console.log('inside')
  return new Promise(() => setInterval(() => {}, 1000))
})
