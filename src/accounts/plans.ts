/** Plans as clients see them. They are rows that the operator changes by SQL; `null` is no limit. */
import { z } from 'zod'
import type { Prisma } from '../db/prisma.ts'

const limitOf = z.number().nullable()

export const planRecord = z
  .object({
    name: z.string(),
    agentLimit: limitOf,
    secretLimit: limitOf,
    channels: z.boolean(),
    customDomains: z.boolean(),
    pinByCid: z.boolean(),
    hotSwaps: z.boolean(),
    maxFileBytes: limitOf,
    storageBytes: limitOf,
    requestsPerMinute: limitOf,
    agentDiskMb: limitOf.describe('`null` is the setting `BERTH_AGENT_DISK_MB`.'),
  })
  .describe('What the plan allows; `null` is no limit.')

export function toPlanRecord(plan: Prisma.PlanModel): z.output<typeof planRecord> {
  const numberOf = (value: bigint | null) => (value === null ? null : Number(value))
  return {
    ...plan,
    maxFileBytes: numberOf(plan.maxFileBytes),
    storageBytes: numberOf(plan.storageBytes),
  }
}
