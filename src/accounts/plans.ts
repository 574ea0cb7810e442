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

type PlanRecord = z.output<typeof planRecord>
const FIELDS = planRecord.keyof().options

/** The plan as clients see it: a column that the record does not name stays inside. */
export function toPlanRecord(plan: Prisma.PlanModel): PlanRecord {
  const numberOf = (value: bigint | null) => (value === null ? null : Number(value))
  const known: PlanRecord = {
    ...plan,
    maxFileBytes: numberOf(plan.maxFileBytes),
    storageBytes: numberOf(plan.storageBytes),
  }
  return Object.fromEntries(FIELDS.map((field) => [field, known[field]])) as PlanRecord
}
