/** Publishes events until it is killed, and records which ones: `sequencer.program.ts <database URL>`. */
import { createPool } from '../../../src/db/pool.ts'
import { Sequencer } from '../../../src/events/sequencer.ts'
import { createLogger } from '../../../src/log.ts'

const log = createLogger('test', 'silent')
const pool = createPool(process.argv[2] ?? '', 2, log)
new Sequencer({
  pool,
  log,
  fanOut: async (tx, events) => {
    for (const { id } of events) await tx.query('INSERT INTO followed VALUES ($1)', [id])
  },
}).start()
