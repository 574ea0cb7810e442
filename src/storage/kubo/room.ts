import { randomBytes } from 'node:crypto'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { type KuboClient, OFFLINE } from './client.ts'

const PROBE_MS = 10_000
/** As large as the blocks that Berth writes. */
const PROBE_BYTES = 1_048_576
/** A pin without a block. */
const PROBE_PIN = CID.createV1(raw.code, identity.digest(new TextEncoder().encode('berth: is there room?')))

/**
 * Has Kubo write a block that nobody else has, and a pin, and takes both away again: once the log of its datastore could
 * not be written, Kubo takes blocks and no pins until it is started again.
 * @throws KuboError for what it refuses, StorageError `unavailable` or `aborted`.
 */
export async function probeRoom(client: KuboClient, signal: AbortSignal): Promise<void> {
  const limits = { signal, deadlineMs: PROBE_MS }
  const cid = await client.call('block/put', limits, (rpc, signal) =>
    rpc.block.put(randomBytes(PROBE_BYTES), { format: 'raw', mhtype: 'sha2-256', version: 1, signal }),
  )
  await client.call('block/rm', limits, async (rpc, signal) => {
    for await (const { error } of rpc.block.rm(cid, { force: true, signal })) if (error) throw error
  })
  await client.call('pin/add', limits, (rpc, signal) => rpc.pin.add(PROBE_PIN, { signal, ...OFFLINE }))
  await client.call('pin/rm', limits, (rpc, signal) => rpc.pin.rm(PROBE_PIN, { signal, ...OFFLINE }))
}
