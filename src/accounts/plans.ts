/** Plans as clients see them. They are rows that the operator changes by SQL; `null` means no limit. */

import { z } from 'zod'
import type { Prisma } from '../db/prisma.ts'
import { like } from '../http/fields.ts'

const limitOf = z.number().nullable()

export const planRecord = z
  .object({
    name: like('pro'),
    agentLimit: limitOf,
    secretLimit: limitOf,
    channels: like(true),
    customDomains: like(true),
    pinByCid: like(true),
    hotSwaps: like(true),
    maxFileBytes: limitOf,
    storageBytes: limitOf,
    requestsPerMinute: limitOf,
    agentDiskMb: limitOf.describe('`null` means the setting `diskMb` of `BERTH_AGENT_LIMITS`.'),
    replicas: limitOf.describe('At least so many in IPFS Cluster; `null` means `IPFS_CLUSTER_REPLICATION`.'),
    modelUsdPerMonth: z
      .string()
      .nullable()
      .describe('US dollars that the agents of a workspace may spend on models in a month, in UTC.'),
    modelTokensPerMonth: limitOf.describe('The same in tokens.'),
  })
  .describe('What the plan allows; `null` means no limit.')

type PlanRecord = z.output<typeof planRecord>
const FIELDS = planRecord.keyof().options

/** The plan as clients see it: columns that the record does not name are left out. */
export function toPlanRecord(plan: Prisma.PlanModel): PlanRecord {
  const numberOf = (value: bigint | null) => (value === null ? null : Number(value))
  const known: PlanRecord = {
    ...plan,
    maxFileBytes: numberOf(plan.maxFileBytes),
    storageBytes: numberOf(plan.storageBytes),
    modelUsdPerMonth: plan.modelUsdPerMonth?.toFixed() ?? null,
    modelTokensPerMonth: numberOf(plan.modelTokensPerMonth),
  }
  return Object.fromEntries(FIELDS.map((field) => [field, known[field]])) as PlanRecord
}
