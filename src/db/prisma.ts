import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from './generated/client.ts'
import type { Pool } from './pool.ts'

export { Prisma, type PrismaClient } from './generated/client.ts'

/** Prisma over the process's own pool, so that both draw on one budget of connections. */
export function createPrisma(pool: Pool): PrismaClient {
  return new PrismaClient({ adapter: new PrismaPg(pool, { disposeExternalPool: false }) })
}
