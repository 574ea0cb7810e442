import { CID } from 'multiformats/cid'
import { type GcReport, StorageError } from '../port.ts'
import { type Kubo, OFFLINE } from './client.ts'
import type { KuboStream } from './stream.ts'

const SHORT_MS = 10_000
/** Sizes that are requested at a time. */
const ASKED = 16

/** Leaves out the number of blocks, for which Kubo scans all of them. The types of kubo-rpc-client lack it. */
const SIZE_ONLY = { sizeOnly: true }

/** The size of the repository on disk, in bytes. */
export async function readRepoBytes({ client }: Pick<Kubo, 'client'>, signal: AbortSignal): Promise<number> {
  const limits = { signal, deadlineMs: SHORT_MS }
  const { repoSize } = await client.call('repo/stat', limits, (rpc, signal) =>
    rpc.repo.stat({ signal, ...SIZE_ONLY }),
  )
  return Number(repoSize)
}

/**
 * Runs Kubo's GC. It waits for running pins and blocks new ones, for minutes on a large repository; only the signal
 * limits it. The freed bytes are computed from the size of the repository, because Kubo does not report them.
 */
export async function collectGarbage(kubo: Kubo, signal: AbortSignal): Promise<GcReport> {
  const before = await readRepoBytes(kubo, signal)
  let removedBlocks = 0
  for await (const row of kubo.stream.rows<{ Error?: string }>('repo/gc', {}, { signal })) {
    if (row.Error) throw new StorageError('unavailable', `Kubo's GC failed: ${row.Error}`)
    removedBlocks++
  }
  const removedBytes = Math.max(0, before - (await readRepoBytes(kubo, signal)))
  return { removedBlocks, removedBytes, keptBlocks: null }
}

/**
 * Finds the blocks that Kubo's GC would remove: neither a pin nor its files (MFS) lead to them. Kubo cannot report this
 * itself.
 */
export async function findGarbage(kubo: Kubo, signal: AbortSignal): Promise<GcReport> {
  const kept = await keptBlocks(kubo, signal)
  const report = { removedBlocks: 0, removedBytes: 0, keptBlocks: 0 }
  const measure = async (cid: CID): Promise<void> => {
    const limits = { signal, deadlineMs: SHORT_MS }
    const { size } = await kubo.client.call('block/stat', limits, (rpc, signal) =>
      rpc.block.stat(cid, { signal, ...OFFLINE }),
    )
    report.removedBlocks++
    report.removedBytes += size
  }
  let asked: Promise<void>[] = []
  for await (const cid of refs(kubo.stream, 'refs/local', {}, signal)) {
    if (kept.has(keyOf(cid))) {
      report.keptBlocks++
      continue
    }
    asked.push(measure(cid))
    if (asked.length < ASKED) continue
    await Promise.all(asked)
    asked = []
  }
  await Promise.all(asked)
  return report
}

/** Pins and blocks may have different CIDs for the same bytes. */
const keyOf = (cid: CID): string => Buffer.from(cid.multihash.bytes).toString('base64')

async function keptBlocks({ client, stream }: Kubo, signal: AbortSignal): Promise<Set<string>> {
  const kept = new Set<string>()
  const pins = stream.rows<{ Cid: string }>('pin/ls', { type: 'all', stream: true }, { signal })
  for await (const { Cid } of pins) kept.add(keyOf(CID.parse(Cid)))
  const { cid } = await client.call('files/stat', { signal, deadlineMs: SHORT_MS }, (rpc, signal) =>
    rpc.files.stat('/', { signal, hash: true }),
  )
  kept.add(keyOf(cid))
  const files = refs(stream, 'refs', { arg: `${cid}`, recursive: true, unique: true, ...OFFLINE }, signal)
  for await (const one of files) kept.add(keyOf(one))
  return kept
}

async function* refs(
  stream: KuboStream,
  command: 'refs' | 'refs/local',
  params: Record<string, string | boolean>,
  signal: AbortSignal,
): AsyncGenerator<CID> {
  for await (const { Ref, Err } of stream.rows<{ Ref: string; Err: string }>(command, params, { signal })) {
    if (Err) throw new StorageError('unavailable', `Kubo: ${Err}`)
    yield CID.parse(Ref)
  }
}
