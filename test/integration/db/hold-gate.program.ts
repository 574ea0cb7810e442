/** Shares a gate until it is killed: `hold-gate.program.ts <database URL>`. */
import { Gate } from '../../../src/db/gate.ts'

const gate = new Gate(process.argv[2] ?? '', 'kuboPublic')
await gate.share(new AbortController().signal, () => {
  console.log('inside')
  return new Promise(() => setInterval(() => {}, 1000))
})
