/** Every kind of operation and the one handler that does it; the type holds the table complete. */
import type { Handlers } from '../src/operations/runner.ts'
import { agentHandlers } from './agents/index.ts'
import type { AgentWorkerServices } from './agents/services.ts'
import { contentRelease } from './content-release.ts'
import { type PinAddServices, pinAdd } from './pin-add.ts'
import { pinRemove } from './pin-remove.ts'

export interface WorkerServices extends PinAddServices {
  /** Undefined in a worker that serves no queue of agents. */
  agents: AgentWorkerServices | undefined
}

export function createHandlers(services: WorkerServices): Handlers {
  return {
    'pin.add': pinAdd(services, 'add'),
    'pin.repair': pinAdd(services, 'repair'),
    'pin.remove': pinRemove(services),
    'content.release': contentRelease(services),
    ...agentHandlers(services.agents),
  }
}
