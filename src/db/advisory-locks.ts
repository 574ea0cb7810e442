/** Every advisory lock that Berth takes in its database: a number each, and why it is held. */
import { type Pool, type Queryable, queryOne } from './pool.ts'
import { withSession } from './session.ts'

/**
 * Locks of one key among many, held until the transaction ends. PostgreSQL hashes the key with the number as seed.
 * A number is never used again for something else: an older version may still take it while a new one starts.
 */
const KEYED = {
  /** A CID's multihash in hex: one process at a time counts its references and unpins it, or checks its pin and writes that it is there. */
  cid: 0,
  /** A workspace: its stored bytes are counted and added to. The functions of migration 0013 take it too. */
  storedBytes: 1,
  /** A queue: one dispatcher at a time counts what is dispatched and adds to it. */
  dispatch: 2,
  /** A workspace, network and CID: one change of a swap at a time, so that ids and times grow together. */
  swap: 3,
  /** A workspace: its agents are counted and one is added. */
  newAgent: 4,
  /** All events: one process at a time gives them ids, so that whoever reads in their order misses none. */
  events: 5,
  /** The partitions of events: one process at a time makes them. */
  eventPartitions: 6,
  /** A kind of channel: its bot tokens are compared with those of other agents and one is added. */
  botTokens: 7,
} as const

/** Locks of which there is one in the database, held by a session: whoever has it does the work, others pass. */
const SINGLE = {
  /** The comparison of agents with their containers. */
  agents: 0x6167656e,
  /** A backup by BERTH_BACKUP_DIR. */
  backup: 0x6261636b,
  /** The files of backups: who makes one, wherever that is, or removes older ones. */
  backupFiles: 0x62616366,
  /** The events of disks that are low. */
  disks: 0x6469736b,
  /** The removal of engines that are out of use. */
  engines: 0x656e67,
  /** The removal of events whose time is over. */
  events: 0x65766e74,
  /** The making of indexes that no migration makes. */
  indexes: 0x6e616d65,
  /** The comparison of the public network's files with its pins. */
  pinsPublic: 0x70696e73,
  /** The same of the private network. */
  pinsPrivate: 0x70696e74,
  /** The collection of garbage in the Kubo of the public network. */
  collectPublic: 0x67637075,
  /** The same of the private network. */
  collectPrivate: 0x67637072,
  /** Shared by all that write to the Kubo of the public network; a collection of its garbage has it alone. */
  kuboPublic: 0x6b627075,
  /** The same of the private network. */
  kuboPrivate: 0x6b627072,
  /** The look for workspaces of agents that have changed. */
  snapshots: 0x736e6170,
  /** Migrations: other processes wait for the lock. */
  migrate: 0x6265727468,
} as const

const SESSION_MS = 10_000

/** Takes the lock of a key until the transaction ends, and waits for it. */
export async function lock(transaction: Queryable, name: keyof typeof KEYED, key: string): Promise<void> {
  await transaction.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, ${KEYED[name]}))`, [key])
}

/** Takes the lock of a key until the transaction ends, unless another has it. @returns whether it is taken. */
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

/** Takes a lock until the session ends, and waits for it. */
export async function lockSession(session: Queryable, name: keyof typeof SINGLE): Promise<void> {
  await session.query(`SELECT pg_advisory_lock(${SINGLE[name]})`)
}

/** Takes a lock until the session ends beside others who take it like this, and waits for who has it alone. */
export async function shareSession(session: Queryable, name: keyof typeof SINGLE): Promise<void> {
  await session.query(`SELECT pg_advisory_lock_shared(${SINGLE[name]})`)
}

/** True while anybody waits for the lock. */
export async function isAwaited(
  session: Queryable,
  name: Exclude<keyof typeof SINGLE, 'migrate'>,
): Promise<boolean> {
  // A lock of one number has its upper half in classid, which is 0 for all but that of migrations, and its lower half in objid.
  const { awaited } = await queryOne<{ awaited: boolean }>(
    session,
    `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
      WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = ${SINGLE[name]} AND NOT l.granted) AS awaited`,
  )
  return awaited
}

/** Takes a lock until the session ends, unless another has it. @returns whether it is taken. */
export async function tryLockSession(session: Queryable, name: keyof typeof SINGLE): Promise<boolean> {
  const { mine } = await queryOne<{ mine: boolean }>(
    session,
    `SELECT pg_try_advisory_lock(${SINGLE[name]}) AS mine`,
  )
  return mine
}

/** Runs `work` unless another process does. The session is its own: the work may take long. */
export async function withAdvisoryLock(
  pool: Pool,
  name: keyof typeof SINGLE,
  work: () => Promise<void>,
): Promise<void> {
  const options = { name: 'berth-reconcile', connectMs: SESSION_MS, queryMs: SESSION_MS }
  await withSession(pool.options.connectionString, options, async (session) => {
    if (await tryLockSession(session, name)) await work()
  })
}
