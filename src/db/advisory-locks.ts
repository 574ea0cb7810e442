/** Every advisory lock that Berth takes in its database, each with a number and the reason for it. */
import { type Pool, type Queryable, queryOne } from './pool.ts'
import { withSession } from './session.ts'

/**
 * Locks on one key among many, held until the transaction ends. PostgreSQL hashes the key with the number as seed. A
 * number is never reused for something else: an older version may still use it while a new one starts.
 */
const KEYED = {
  /**
   * A CID's multihash in hex: one process at a time counts its references and unpins it, or checks its pin and records
   * it.
   */
  cid: 0,
  /** A workspace: counts its stored bytes and adds to them. The functions of migration 0013 take it too. */
  storedBytes: 1,
  /** A queue: one dispatcher at a time counts the dispatched operations and adds to them. */
  dispatch: 2,
  /** A workspace, network and CID: one swap change at a time, so that ids and times increase together. */
  swap: 3,
  /** A workspace: counts its agents and adds one. */
  newAgent: 4,
  /** All events: one process at a time assigns ids, so that readers in id order miss none. */
  events: 5,
  /** The partitions of events: one process at a time creates them. */
  eventPartitions: 6,
  /** A kind of channel: compares its bot tokens with other agents' and adds one. */
  botTokens: 7,
  /** A workspace: compares its model budgets with its spending and adds a lease, or reports that one was reached. */
  modelBudgets: 8,
  /** A workspace: replaces an egress policy. */
  egressPolicies: 9,
} as const

/** Locks that exist once per database, held by a session: the holder does the work, others skip it. */
const SINGLE = {
  /** The comparison of agents with their containers. */
  agents: 0x6167656e,
  /** A backup to BERTH_BACKUP_DIR. */
  backup: 0x6261636b,
  /** The files of backups: taken by processes that create a backup, wherever it is stored, or remove older ones. */
  backupFiles: 0x62616366,
  /** The events about low disks. */
  disks: 0x6469736b,
  /** The removal of unused engines. */
  engines: 0x656e67,
  /** The removal of expired events. */
  events: 0x65766e74,
  /** The building of indexes that no migration creates. */
  indexes: 0x6e616d65,
  /** The comparison of the public network's files with its pins. */
  pinsPublic: 0x70696e73,
  /** The same for the private network. */
  pinsPrivate: 0x70696e74,
  /** Garbage collection in the public network's Kubo. */
  collectPublic: 0x67637075,
  /** The same for the private network. */
  collectPrivate: 0x67637072,
  /** Shared by everything that writes to the public network's Kubo; garbage collection holds it exclusively. */
  kuboPublic: 0x6b627075,
  /** The same for the private network. */
  kuboPrivate: 0x6b627072,
  /** Garbage collection in the public network's packs in S3, and writing of packs from rows. */
  packsPublic: 0x706b7075,
  /** The same for the private network. */
  packsPrivate: 0x706b7072,
  /** The comparison of the pool with BERTH_POOL. */
  pool: 0x706f6f6c,
  /** The search for agents with changed workspaces. */
  snapshots: 0x736e6170,
  /** Migrations: other processes wait for the lock. */
  migrate: 0x6265727468,
} as const

const SESSION_MS = 10_000

/** Waits for the lock of a key and holds it until the transaction ends. */
export async function lock(transaction: Queryable, name: keyof typeof KEYED, key: string): Promise<void> {
  await transaction.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, ${KEYED[name]}))`, [key])
}

/** Takes the lock of a key until the transaction ends, unless another session has it. @returns whether it is taken. */
export async function tryLock(
  transaction: Queryable,
  name: keyof typeof KEYED,
  key: string,
): Promise<boolean> {
  const { mine } = await queryOne<{ mine: boolean }>(
    transaction,
    `SELECT pg_try_advisory_xact_lock(hashtextextended($1, ${KEYED[name]})) AS mine`,
    [key],
  )
  return mine
}

/** Waits for a lock and holds it until the session ends. */
export async function lockSession(session: Queryable, name: keyof typeof SINGLE): Promise<void> {
  await session.query(`SELECT pg_advisory_lock(${SINGLE[name]})`)
}

/** Takes a shared lock until the session ends, and waits for an exclusive holder. */
export async function shareSession(session: Queryable, name: keyof typeof SINGLE): Promise<void> {
  await session.query(`SELECT pg_advisory_lock_shared(${SINGLE[name]})`)
}

/** True while a session waits for the lock. */
export async function isAwaited(
  session: Queryable,
  name: Exclude<keyof typeof SINGLE, 'migrate'>,
): Promise<boolean> {
  // A single-number lock has its upper half in classid, which is 0 for all except the migrations' lock, and its lower
  // half in objid.
  const { awaited } = await queryOne<{ awaited: boolean }>(
    session,
    `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
      WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = ${SINGLE[name]} AND NOT l.granted) AS awaited`,
  )
  return awaited
}

/** Takes a lock until the session ends, unless another session has it. @returns whether it is taken. */
export async function tryLockSession(session: Queryable, name: keyof typeof SINGLE): Promise<boolean> {
  const { mine } = await queryOne<{ mine: boolean }>(
    session,
    `SELECT pg_try_advisory_lock(${SINGLE[name]}) AS mine`,
  )
  return mine
}

/** Runs `work` unless another process is doing so. It uses a separate session, because the work may take long. */
export async function withAdvisoryLock(
  pool: Pool,
  name: keyof typeof SINGLE,
  work: () => Promise<void>,
): Promise<void> {
  const options = { name: 'berth-reconcile', connectMs: SESSION_MS, queryMs: SESSION_MS }
  await withSession(pool.directUrl, options, async (session) => {
    if (await tryLockSession(session, name)) await work()
  })
}
