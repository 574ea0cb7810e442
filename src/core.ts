/** The services that features get. */
import type { Redis } from 'ioredis'
import type { Registry } from 'prom-client'
import type { Config } from './config.ts'
import type { Notifications } from './db/notifications.ts'
import type { Pool } from './db/pool.ts'
import type { PrismaClient } from './db/prisma.ts'
import type { Searches } from './db/searches.ts'
import type { Ownership } from './domains/ownership.ts'
import type { AddressLimits } from './http/address-limits.ts'
import type { RateLimiter } from './http/rate-limit.ts'
import type { Bounds } from './lib/bounds.ts'
import type { Closers } from './lib/closers.ts'
import type { Disks } from './lib/disk.ts'
import type { DiskReserve } from './lib/disk-reserve.ts'
import type { Encryption } from './lib/encryption.ts'
import type { SigningKeys } from './lib/signing-keys.ts'
import type { Logger } from './log.ts'
import type { Operations } from './operations/operations.ts'
import type { WorkerStatus } from './operations/worker-status.ts'
import type { Storages } from './storage/open.ts'

/** The services that the roles `web` and `worker` share. */
export interface Base {
  config: Config
  log: Logger
  /** Closes everything that the role has opened, the newest first. */
  parts: Closers
  databaseUrl: string
  pool: Pool
  prisma: PrismaClient
  storages: Storages
  encryption: Encryption
  ownership: Ownership
  /** The folders that the role writes to. */
  disks: Disks
  /** The role's own metrics; modules and the process add theirs. */
  registry: Registry
  /** The connection for pings and rate limits; undefined if the queue is in PostgreSQL. */
  redis: Redis | undefined
}

/** The services that every feature of `web` gets. */
export interface Core extends Base {
  notifications: Notifications
  bounds: Bounds
  /** Refuses new content on a disk that is down to its reserve. */
  disk: DiskReserve
  signingKeys: SigningKeys
  searches: Searches
  operations: Operations
  workers: WorkerStatus
  addresses: AddressLimits
  rateLimiter: RateLimiter
}
