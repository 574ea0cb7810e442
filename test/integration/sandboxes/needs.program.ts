/** Reports whether the engine has what it needs here, and what an agent sees of /tmp. */
import { checkRuntime } from '../../../src/health/checks.ts'
import { createLogger } from '../../../src/log.ts'
import { openProcessRuntime } from '../../../src/sandboxes/process.ts'
import { runIn, specOf } from './subject.ts'

const { options, agentId, command } = JSON.parse(process.argv[2] ?? '{}')
const runtime = await openProcessRuntime({ ...options, log: createLogger('test', 'silent') })
const health = await checkRuntime(runtime, undefined)
await runtime.create(specOf(agentId))
const said = await runtime.start(agentId).then(
  async ({ address }) => (await runIn(address, command)).output.trim(),
  (error) => `${error.code}: ${error.message}`,
)
await runtime.remove(agentId, { volume: true })
await runtime.close()
console.log(JSON.stringify({ health, said }))
