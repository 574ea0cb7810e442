/**
 * Supervises a good and a deaf role, which record themselves at the given path, and prints their URLs when they are
 * ready.
 */

import { createLogger } from '../../../src/log.ts'
import { Supervisor } from '../../../src/standalone/supervisor.ts'

const program = new URL('./role.program.ts', import.meta.url).pathname
const role = (name: string) => ({ name, argv: [program, name], env: {} })
const supervisor = new Supervisor({
  roles: [[role('good')], [role('deaf')]],
  recordPath: String(process.argv[2]),
  onLine: () => {},
  log: createLogger('program', 'silent'),
})
console.log(JSON.stringify(await supervisor.ready))
