/** A worker that creates and starts agents as processes, and then waits to be killed, or kills itself halfway. */

import { createLogger } from '../../../src/log.ts'
import { openProcessRuntime } from '../../../src/sandboxes/process.ts'
import { specOf } from './subject.ts'

const { options, agents, killAfterMs } = JSON.parse(process.argv[2] ?? '{}')
const runtime = await openProcessRuntime({ ...options, log: createLogger('test', 'silent') })
for (const agentId of agents) {
  await runtime.create(specOf(agentId))
  if (killAfterMs !== undefined) setTimeout(() => process.kill(process.pid, 'SIGKILL'), killAfterMs)
  await runtime.start(agentId)
}
console.log('started')
setInterval(() => {}, 1000)
