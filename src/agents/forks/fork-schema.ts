import { z } from 'zod'
import { messages } from '../../errors.ts'
import { like } from '../../http/fields.ts'
import { startedOperation } from '../../operations/operation-route.ts'
import { agentRecord, names } from '../agent.ts'
import { snapshotOfHistory } from '../snapshots/index.ts'

const MAX_FORKS = 10

export const forkBody = z
  .object({
    name: names.shape.name
      .nullish()
      .describe(
        'Default: the agent’s name and “fork”. Several forks get a number behind it. It has the rules of an agent’s name.',
      ),
    snapshotCid: snapshotOfHistory
      .nullish()
      .describe(
        'A snapshot of the agent’s history, by any CID version and base. Default: its workspace now.',
      ),
    count: z
      .int('must be a whole number')
      .min(1)
      .max(MAX_FORKS)
      .default(1)
      .meta({ examples: [1] })
      .describe('How many forks to make.'),
  })
  .nullish()
  .transform((body) => body ?? { count: 1 })
export type ForkBody = z.output<typeof forkBody>

const made = z.object({
  agent: agentRecord,
  operation: startedOperation.describe('The start of the fork.'),
  error: like(messages.gatewayFailed)
    .optional()
    .describe('Why the fork does not run, if its start has failed.'),
  code: like('gateway_failed').optional(),
})
const refused = z.object({ error: like(messages.agentLimit), code: like('agent_limit') })

export const forked = z.object({
  success: z.literal(true),
  forks: z
    .array(z.union([made, refused]))
    .describe('One entry per fork; one that was not made has only an error.'),
})
export type Forked = z.output<typeof forked>
