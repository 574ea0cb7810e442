/**
 * Retrieves the content of a file and pins it.
 *
 * Every step may be repeated: the pin is idempotent, and the file's row changes only in the transaction
 * that ends the operation under its epoch. A try that finds nothing leaves a row with a later
 * `next_attempt_at`, not a busy worker.
 */
import { CID } from 'multiformats/cid'
import { crashPoint } from '../src/crash-point.ts'
import { type Pool, type Queryable, transaction } from '../src/db/pool.ts'
import { lockCid } from '../src/files/cid-lock.ts'
import { resolveHostNodes } from '../src/files/host-nodes.ts'
import { isKept } from '../src/files/keepers.ts'
import type { Failure, PENDING } from '../src/files/pins/schema.ts'
import type { Ending } from '../src/operations/lease.ts'
import type { Handler, Run } from '../src/operations/runner.ts'
import type { Storages } from '../src/storage/open.ts'
import {
  type DagStat,
  type Network,
  type PinOptions,
  type Storage,
  StorageError,
} from '../src/storage/port.ts'
import { ProgressReport } from './progress-report.ts'

export interface PinAddServices {
  pool: Pool
  storages: Storages
  stallMs: number
  /** Wait before the second try; it grows fourfold up to an hour. */
  retryMs: number
  /** Content that is not found within this time after the first try is `expired`. */
  expiryMs: number
  allowPrivateHostNodes: boolean
}

/** `repair` works on a file that is visible as pinned, and stays so while it is repaired. */
type Mode = 'add' | 'repair'

interface Target {
  network: Network
  cid: CID
  canonical: string
  hostNodes: string[]
  hostNodesOptional: boolean
  /** Bytes that the plan allows for one file, and that the workspace has left; null is no limit. */
  maxFileBytes: number | null
  bytesLeft: number | null
}

const MAX_RETRY_MS = 3_600_000
/** While the IPFS node is away, tries are cheap and come often. */
const MAX_OUTAGE_RETRY_MS = 30_000

const FAILURES: Record<Failure, string> = {
  expired: 'No node that provides the content was found in time',
  over_free_limit: 'The content would exceed the storage of the plan',
  over_max_size: 'The content is larger than the plan allows for one file',
  invalid_object: 'A block of the content cannot be decoded',
  bad_host_node: 'No host node could be reached, and no other node provides the content',
}

export function pinAdd(services: PinAddServices, mode: Mode): Handler {
  return { handle, giveUp: mode === 'add' ? giveUp : undefined }

  async function handle(run: Run): Promise<void> {
    const { pool, storages, stallMs, allowPrivateHostNodes } = services
    const target = await loadTarget(pool, run.operation.targetId, mode)
    if (!target) return run.end(pool, { state: 'canceled' })
    const storage = storages[target.network]
    const show = (status: (typeof PENDING)[number]) =>
      mode === 'add' ? setStatus(pool, run, status) : undefined
    const progress = new ProgressReport(run, () => show('retrieving'))
    try {
      await show('searching')
      await run.report('searching')
      if (target.bytesLeft !== null && target.bytesLeft <= 0) {
        return await fail(services, run, target, 'over_free_limit', 'no bytes left')
      }
      const origins = await resolveHostNodes(target.hostNodes, allowPrivateHostNodes)
      const options: PinOptions = {
        stallMs,
        maxBytes: smaller(target.maxFileBytes, target.bytesLeft),
        onProgress: (latest) => progress.update(latest),
        signal: run.signal,
      }
      const done = await storage.pin(target.cid, { ...options, origins }).catch((error) => {
        if (!target.hostNodesOptional || error.code !== 'bad_host_node') throw error
        // Somebody who has it may still turn up, or connect to this node.
        return storage.pin(target.cid, options)
      })
      crashPoint('after-pin')
      // Nothing was retrieved where the content was there already.
      if (done.blocks > 0) progress.update({ phase: 'retrieving', ...done, totalBytes: done.bytes })
      await progress.close()
      const stat = await storage.stat(target.cid, { signal: run.signal })
      await finish(services, run, target, stat, mode)
    } catch (error) {
      await progress.close()
      await endTry(services, run, target, mode, error)
    }
  }

  /** Too many errors that nobody foresaw: the file must not wait for ever. */
  function giveUp(run: Run, ending: Ending): Promise<void> {
    return transaction(services.pool, async (client) => {
      await client.query(`UPDATE file SET status = 'expired' WHERE id = $1 AND status <> 'pinned'`, [
        run.operation.targetId,
      ])
      await run.end(client, ending)
    })
  }
}

/** Ends a try that met an error of the storage: in a named failure, or for a later try. @throws any other error. */
async function endTry(
  services: PinAddServices,
  run: Run,
  target: Target,
  mode: Mode,
  error: unknown,
): Promise<void> {
  if (!(error instanceof StorageError) || error.code === 'aborted') throw error
  const expired = run.operation.ageMs >= services.expiryMs
  // A file that has been pinned once does not fail any more: it is searched for until it is back.
  const failure = mode === 'add' ? failureOf(error, target, expired) : undefined
  if (!failure) return retry(services, run, mode, error)
  // The node may be away when the pin is to be released: then that is the error of this try.
  await fail(services, run, target, failure, error.message).catch((unreleased) =>
    endTry(services, run, target, mode, unreleased),
  )
}

/**
 * The last step. Under the CID's lock no unpin can come between the check that it is pinned and the
 * row that says so; an unpin that came before the lock sends the pin back for another try.
 */
async function finish(
  { pool, storages }: PinAddServices,
  run: Run,
  { network, cid, bytesLeft }: Target,
  stat: DagStat,
  mode: Mode,
): Promise<void> {
  const { targetId: fileId, workspaceId } = run.operation
  const storage = storages[network]
  crashPoint('before-final-write')
  await transaction(pool, async (client) => {
    await lockCid(client, cid)
    const isPinned = await storage.isPinned(cid, { signal: run.signal })
    // Where storage is limited, it is counted again, one pin of the workspace at a time.
    if (bytesLeft !== null)
      await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [workspaceId])
    const target = await loadTarget(client, fileId, mode)
    if (!target) return run.end(client, { state: 'canceled' })
    const failure = sizeFailure(target, stat.size)
    if (failure) return failUnderLock(client, storage, run, target, failure, `${stat.size} bytes`)
    if (!isPinned) {
      return run.end(client, { state: 'queued', delayMs: 0, code: 'unpinned', cause: 'unpinned in between' })
    }
    const { rowCount } = await client.query(
      `UPDATE file SET status = 'pinned', size = $2, number_of_files = $3, mime_type = $4,
         pinned_at = coalesce(pinned_at, now())
       WHERE id = $1 AND removed_at IS NULL`,
      [fileId, stat.size, stat.files, stat.mimeType],
    )
    // Withdrawn since it was read: its removal waits for this operation, and releases the pin.
    await run.end(client, { state: rowCount ? 'succeeded' : 'canceled' })
  })
}

/** The named failure that an error of the storage stands for; undefined when another try may do better. */
function failureOf({ code }: StorageError, target: Target, expired: boolean): Failure | undefined {
  if (code === 'bad_host_node' || code === 'invalid_object') return code
  if (code === 'too_large') return sizeFailure(target, Number.POSITIVE_INFINITY)
  if (code === 'stalled' && expired) return 'expired'
  return undefined
}

/** Puts the operation back for a later try; nothing but its row waits. */
async function retry(
  { pool, retryMs, expiryMs }: PinAddServices,
  run: Run,
  mode: Mode,
  error: StorageError,
): Promise<void> {
  const { attempts, ageMs } = run.operation
  const untilExpiry = mode === 'add' ? Math.max(0, expiryMs - ageMs) : Number.POSITIVE_INFINITY
  const nodeAtFault = error.code === 'unavailable' || error.code === 'not_found'
  const backoff = nodeAtFault
    ? Math.min(1000 * 2 ** (attempts - 1), MAX_OUTAGE_RETRY_MS)
    : Math.min(retryMs * 4 ** (attempts - 1), MAX_RETRY_MS, untilExpiry)
  // Spread, so that pins that failed together do not come back together.
  const delayMs = backoff * (0.9 + Math.random() * 0.2)
  run.log.info({ code: error.code, attempts, delayMs }, error.message)
  await run.end(pool, { state: 'queued', delayMs, code: error.code, cause: error.message })
}

/** Ends the run in a named failure, and releases the content, which another file may have left to this one. */
async function fail(
  { pool, storages }: PinAddServices,
  run: Run,
  target: Target,
  failure: Failure,
  cause: string,
): Promise<void> {
  await transaction(pool, async (client) => {
    await lockCid(client, target.cid)
    await failUnderLock(client, storages[target.network], run, target, failure, cause)
  })
}

/** Nothing is written before the node has answered: a row must not stay locked while it hangs. */
async function failUnderLock(
  client: Queryable,
  storage: Storage,
  run: Run,
  { cid, canonical }: Target,
  failure: Failure,
  cause: string,
): Promise<void> {
  const fileId = run.operation.targetId
  if (!(await isKept(client, storage.network, canonical, { except: fileId }))) {
    await storage.unpin(cid, { signal: run.signal })
  }
  // The file's row is locked before the operation's, as by every writer.
  const { rowCount } = await client.query(
    'UPDATE file SET status = $2 WHERE id = $1 AND removed_at IS NULL',
    [fileId, failure],
  )
  const failed = { state: 'failed', code: failure, error: FAILURES[failure], cause } as const
  await run.end(client, rowCount ? failed : { state: 'canceled' })
}

async function loadTarget(db: Queryable, fileId: string, mode: Mode): Promise<Target | undefined> {
  const { rows } = await db.query(
    `SELECT f.network, f.cid_v1, f.host_nodes, f.host_nodes_optional, p.max_file_bytes::float8 AS max_file_bytes,
       (p.storage_bytes - CASE WHEN p.storage_bytes IS NOT NULL THEN (
         SELECT coalesce(sum(size), 0) FROM file used
         WHERE used.workspace_id = f.workspace_id AND used.status = 'pinned' AND used.removed_at IS NULL
           AND used.id <> f.id) END)::float8 AS bytes_left
     FROM file f JOIN workspace w ON w.id = f.workspace_id JOIN plan p ON p.name = w.plan
     WHERE f.id = $1 AND f.removed_at IS NULL AND (f.status = 'pinned') = $2`,
    [fileId, mode === 'repair'],
  )
  const row = rows[0]
  return (
    row && {
      network: row.network,
      cid: CID.parse(row.cid_v1),
      canonical: row.cid_v1,
      hostNodes: row.host_nodes,
      hostNodesOptional: row.host_nodes_optional,
      // What is pinned already stays, also where a plan has become smaller.
      maxFileBytes: mode === 'add' ? row.max_file_bytes : null,
      bytesLeft: mode === 'add' ? row.bytes_left : null,
    }
  )
}

/** Shows a status while this run has the lease; a late write cannot touch a file that is finished. */
async function setStatus(pool: Pool, { operation }: Run, status: (typeof PENDING)[number]): Promise<void> {
  await pool.query(
    `UPDATE file SET status = $2 WHERE id = $1 AND status IN ('prechecking', 'backfilled', 'searching', 'retrieving')
       AND EXISTS (SELECT FROM operation WHERE id = $3 AND epoch = $4 AND state = 'running')`,
    [operation.targetId, status, operation.id, operation.epoch],
  )
}

function sizeFailure({ maxFileBytes, bytesLeft }: Target, size: number): Failure | undefined {
  if (maxFileBytes !== null && size > maxFileBytes && maxFileBytes <= (bytesLeft ?? Number.POSITIVE_INFINITY))
    return 'over_max_size'
  if (bytesLeft !== null && size > bytesLeft) return 'over_free_limit'
  return undefined
}

function smaller(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
