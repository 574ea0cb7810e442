import { CID } from 'multiformats/cid'
import { type GcReport, StorageError } from '../port.ts'
import { type KuboClient, OFFLINE } from './client.ts'

const SHORT_MS = 10_000
/** Sizes that are requested at a time. */
const ASKED = 16

/** The size of the repository on disk, in bytes. */
export async function readRepoBytes(kubo: KuboClient, signal: AbortSignal): Promise<number> {
  // Leaves out the number of blocks, for which Kubo scans all of them.
  const params = { 'size-only': true }
  const limits = { signal, deadlineMs: SHORT_MS }
  return (await kubo.call<{ RepoSize: number }>('repo/stat', params, limits)).RepoSize
}

/**
 * Runs Kubo's GC. It waits for running pins and blocks new ones, for minutes on a large repository; only the signal
 * limits it. The freed bytes are computed from the size of the repository, because Kubo does not report them.
 */
export async function collectGarbage(kubo: KuboClient, signal: AbortSignal): Promise<GcReport> {
  const before = await readRepoBytes(kubo, signal)
  let removedBlocks = 0
  for await (const row of kubo.rows<{ Error?: string }>('repo/gc', {}, { signal })) {
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
export async function findGarbage(kubo: KuboClient, signal: AbortSignal): Promise<GcReport> {
  const kept = await keptBlocks(kubo, signal)
  const report = { removedBlocks: 0, removedBytes: 0, keptBlocks: 0 }
  const measure = async (cid: CID): Promise<void> => {
    const params = { arg: `${cid}`, ...OFFLINE }
    const limits = { signal, deadlineMs: SHORT_MS }
    const { Size } = await kubo.call<{ Size: number }>('block/stat', params, limits)
    report.removedBlocks++
    report.removedBytes += Size
  }
  let asked: Promise<void>[] = []
  for await (const cid of refs(kubo, 'refs/local', {}, signal)) {
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

async function keptBlocks(kubo: KuboClient, signal: AbortSignal): Promise<Set<string>> {
  const kept = new Set<string>()
  const pins = kubo.rows<{ Cid: string }>('pin/ls', { type: 'all', stream: true }, { signal })
  for await (const { Cid } of pins) kept.add(keyOf(CID.parse(Cid)))
  const limits = { signal, deadlineMs: SHORT_MS }
  const { Hash } = await kubo.call<{ Hash: string }>('files/stat', { arg: '/', hash: true }, limits)
  kept.add(keyOf(CID.parse(Hash)))
  const files = refs(kubo, 'refs', { arg: Hash, recursive: true, unique: true, ...OFFLINE }, signal)
  for await (const one of files) kept.add(keyOf(one))
  return kept
}

async function* refs(
  kubo: KuboClient,
  command: 'refs' | 'refs/local',
  params: Record<string, string | boolean>,
  signal: AbortSignal,
): AsyncGenerator<CID> {
  for await (const { Ref, Err } of kubo.rows<{ Ref: string; Err: string }>(command, params, { signal })) {
    if (Err) throw new StorageError('unavailable', `Kubo: ${Err}`)
    yield CID.parse(Ref)
  }
}
