/**
 * Retrieves and pins a file's content, pins it again if the node has lost it, and releases it.
 *
 * Every step of a retrieval may be repeated: the pin is idempotent, and the file becomes pinned or failed only in the
 * transaction that ends the operation. Until then its row shows `searching` or `retrieving`, under the same epoch. An
 * attempt that finds nothing leaves a row with a later `next_attempt_at`, not a busy worker.
 */
import { CID } from 'multiformats/cid'
import { lock } from '../../src/db/advisory-locks.ts'
import type { Pool, Queryable } from '../../src/db/pool.ts'
import type { Transaction } from '../../src/db/prisma.ts'
import { finishRetrieval, readRetrieval, showRetrieval } from '../../src/db/statements/pins.ts'
import { lockCid } from '../../src/files/held-content.ts'
import { DIALLED_HOST_NODES, resolveHostNodes } from '../../src/files/host-nodes.ts'
import type { Failure, PENDING } from '../../src/files/pins/pin-record.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import {
  backoffMs,
  type Ended,
  type Handler,
  OperationCanceled,
  OperationFailed,
  RetryLater,
  type Run,
} from '../../src/operations/handler.ts'
import {
  type DagStat,
  type Network,
  type PinOptions,
  StorageError,
  UnsupportedError,
} from '../../src/storage/port.ts'
import { ProgressReport } from '../progress-report.ts'
import { defineHandler, type StorageWorkerServices } from '../services.ts'
import { releaseUnlessKept } from './content.ts'

/** Retrieves the content of a file and pins it. */
export const add = defineHandler('pin.add', (services) => retrieval(services, 'add'))

/** Pins content again that the IPFS node has lost. */
export const repair = defineHandler('pin.repair', (services) => retrieval(services, 'repair'))

/** Releases the content of a deleted file, unless another file keeps it, and deletes the file's row. */
export const remove = defineHandler('pin.remove', ({ storages }) => ({
  handle(run) {
    const fileId = run.operation.targetId
    return run.succeed(async (tx) => {
      const file = await tx.file.findUnique({ where: { id: fileId }, select: { cidV1: true, network: true } })
      if (!file) return {}
      await releaseUnlessKept(tx, storages[file.network as Network], file.cidV1, run)
      await tx.file.deleteMany({ where: { id: fileId } })
      return {}
    })
  },
}))

/** `repair` works on a file that is visible as pinned, and stays so during the repair. */
type Mode = 'add' | 'repair'

interface Target {
  network: Network
  cid: CID
  hostNodes: string[]
  hostNodesOptional: boolean
  /** Bytes that the plan allows for one file, and that the workspace has left; null for no limit. */
  maxFileBytes: number | null
  bytesLeft: number | null
}

const MAX_RETRY_MS = 3_600_000

/** Messages of failures for clients; the storage supplies the message of `bad_host_node`. */
const FAILURES: Record<Exclude<Failure, 'bad_host_node'>, string> = {
  expired: 'No node that provides the content was found in time',
  over_free_limit: 'The content would exceed the storage of the plan',
  over_max_size: 'The content is larger than the plan allows for one file',
  invalid_object: 'A block of the content cannot be decoded',
}

function retrieval(services: StorageWorkerServices, mode: Mode): Handler<'pin.add'> & Handler<'pin.repair'> {
  const { pool, storages, stallMs, allowPrivateHostNodes } = services

  async function handle(run: Run): Promise<Ended> {
    const target = await loadTarget(pool, run.operation.targetId, mode)
    if (!target) throw new OperationCanceled('the file is gone')
    const storage = storages[target.network]
    const show = (status: (typeof PENDING)[number]) =>
      mode === 'add' ? setStatus(pool, run, status) : undefined
    const progress = new ProgressReport(run, () => show('retrieving'))
    try {
      await Promise.all([show('searching'), run.report('searching')])
      if (target.bytesLeft !== null && target.bytesLeft <= 0)
        throw failureBy('over_free_limit', 'no bytes left')
      const nodes = await resolveHostNodes(target.hostNodes, allowPrivateHostNodes)
      const origins = nodes.slice(0, DIALLED_HOST_NODES)
      const options: PinOptions = {
        stallMs,
        maxBytes: smallerLimit(target.maxFileBytes, target.bytesLeft),
        onProgress: (latest) => progress.update(latest),
        signal: run.signal,
      }
      const done = await storage.pin(target.cid, { ...options, origins }).catch((error) => {
        if (!target.hostNodesOptional || error.code !== 'bad_host_node') throw error
        // A peer with the content may still appear, or connect to this node.
        return storage.pin(target.cid, options)
      })
      crashPoint('after-pin')
      // Content that already existed was not retrieved.
      if (done.blocks > 0) progress.update({ phase: 'retrieving', ...done, totalBytes: done.bytes })
      const [stat] = await Promise.all([storage.stat(target.cid, { signal: run.signal }), progress.close()])
      return await finish(services, run, target, stat, mode)
    } catch (error) {
      await progress.close()
      throw explain(services, run, target, mode, error)
    }
  }

  return mode === 'add' ? { handle, failed: (...failed) => writeFailure(services, ...failed) } : { handle }
}

/** Turns a storage error into a named failure, or another attempt. */
function explain(
  { retryMs, expiryMs }: StorageWorkerServices,
  { operation: { ageMs, attempts } }: Run,
  target: Target,
  mode: Mode,
  error: unknown,
): unknown {
  if (!(error instanceof StorageError) || error.code === 'aborted') return error
  const { code, message } = error
  // A file that has been pinned once no longer fails: the search continues until its content is back.
  const failure = mode === 'add' ? failureOf(error, target, ageMs >= expiryMs) : undefined
  if (failure) return failureBy(failure, message, error)
  if (error.isAway || code === 'not_found') return new RetryLater(code, message, { cause: error })
  const untilExpiry = mode === 'add' ? Math.max(0, expiryMs - ageMs) : Number.POSITIVE_INFINITY
  // Attempts that found the node away also count, and are quick, so the wait is at most twice the time so far.
  const longest = Math.min(MAX_RETRY_MS, untilExpiry, Math.max(retryMs, 2 * ageMs))
  const backoff = { firstMs: retryMs, factor: 4, maxMs: longest }
  return new RetryLater(code, message, { delayMs: backoffMs(backoff, attempts), cause: error })
}

const failureBy = (failure: Failure, message: string, cause?: unknown): OperationFailed => {
  return new OperationFailed(failure, message, {
    publicMessage: publicMessage(failure, message, cause),
    cause,
  })
}

function publicMessage(failure: Failure, message: string, cause: unknown): string {
  if (failure === 'bad_host_node') return message
  if (cause instanceof UnsupportedError) return `A block of the content is not supported: ${cause.message}`
  return FAILURES[failure]
}

/** The named failure for a storage error; undefined if another attempt may succeed. */
function failureOf({ code }: StorageError, target: Target, expired: boolean): Failure | undefined {
  if (code === 'bad_host_node' || code === 'invalid_object') return code
  if (code === 'too_large') return sizeFailure(target, Number.POSITIVE_INFINITY)
  if (code === 'stalled' && expired) return 'expired'
  return undefined
}

/**
 * The last step. Under the CID's lock no unpin can come between the check of the pin and the row that records it. If an
 * unpin came before the lock, the pin gets another attempt.
 */
function finish(
  { storages }: StorageWorkerServices,
  run: Run,
  { network, cid, bytesLeft }: Target,
  stat: DagStat,
  mode: Mode,
): Promise<Ended> {
  const { targetId: fileId, workspaceId } = run.operation
  crashPoint('before-final-write')
  return run.succeed(async (tx) => {
    await lockCid(tx, cid)
    const isPinned = await storages[network].isPinned(cid, { signal: run.signal })
    // Limited storage is counted again, one pin of the workspace at a time.
    if (bytesLeft !== null) await lock(tx, 'storedBytes', workspaceId)
    const target = await loadTarget(tx, fileId, mode)
    if (!target) throw new OperationCanceled('the file is gone')
    const failure = sizeFailure(target, stat.size)
    if (failure) throw failureBy(failure, `${stat.size} bytes`)
    if (!isPinned) throw new RetryLater('unpinned', 'unpinned in between', { delayMs: 0 })
    const { rowCount } = await finishRetrieval.run(tx, fileId, stat.size, stat.files, stat.mimeType)
    // The file was withdrawn since it was read: its removal waits for this operation, and releases the pin.
    if (!rowCount) throw new OperationCanceled('the file was withdrawn')
    return {}
  })
}

/** Sets the status of a failed file, and releases the content, which another file may have left to this one. */
async function writeFailure(
  { storages }: StorageWorkerServices,
  tx: Transaction,
  { operation: { targetId: id }, signal }: Run,
  { code }: OperationFailed,
): Promise<void> {
  // After too many unexpected errors the file expires, whatever the node says: it must not wait forever.
  if (code === 'internal') {
    await tx.file.updateMany({ where: { id, status: { not: 'pinned' } }, data: { status: 'expired' } })
    return
  }
  const where = { id, removedAt: null }
  const file = await tx.file.findFirst({ where, select: { network: true, cidV1: true } })
  if (!file) throw new OperationCanceled('the file was withdrawn')
  // Writes the row after the node has responded, so that it is not locked while the node hangs.
  await releaseUnlessKept(tx, storages[file.network as Network], file.cidV1, { signal, except: id })
  const { count } = await tx.file.updateMany({ where, data: { status: code } })
  if (!count) throw new OperationCanceled('the file was withdrawn')
}

async function loadTarget(db: Queryable, fileId: string, mode: Mode): Promise<Target | undefined> {
  const { rows } = await readRetrieval.run(db, fileId, mode === 'repair')
  if (!rows[0]) return undefined
  const target = { ...rows[0], cid: CID.parse(rows[0].cid) }
  // Content that is already pinned stays, even if a plan has become smaller.
  return mode === 'add' ? target : { ...target, maxFileBytes: null, bytesLeft: null }
}

/** Shows a status while this run has the lease; a late write cannot touch a finished file. */
async function setStatus(pool: Pool, { operation }: Run, status: (typeof PENDING)[number]): Promise<void> {
  await showRetrieval.run(pool, operation.targetId, status, operation.id, operation.epoch)
}

function sizeFailure({ maxFileBytes, bytesLeft }: Target, size: number): Failure | undefined {
  if (maxFileBytes !== null && size > maxFileBytes && maxFileBytes <= (bytesLeft ?? Number.POSITIVE_INFINITY))
    return 'over_max_size'
  if (bytesLeft !== null && size > bytesLeft) return 'over_free_limit'
  return undefined
}

function smallerLimit(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
