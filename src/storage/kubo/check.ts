import { randomBytes } from 'node:crypto'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { StorageError } from '../port.ts'
import { type Kubo, KuboClient, OFFLINE } from './client.ts'
import { checkProfile } from './import.ts'
import { KuboError } from './kubo-errors.ts'

const CALL_MS = 10_000
/** The oldest Kubo whose GC cannot lock up and whose pin/add reports bytes. */
const OLDEST = [0, 43] as const
/** A node of the public network gives its blocks to everyone who knows a CID, so it must not store private content. */
export const SAME_NODE =
  'IPFS_PRIVATE_API_URL leads to the node of IPFS_API_URL: give the private network a Kubo of its own'

/**
 * Checks that a node can be used: its version, the DAGs that it builds, and that it is not the other network's node.
 * @throws StorageError `unavailable`, or Error naming what to fix.
 */
export async function checkNode(
  { client, stream }: Kubo,
  otherApiUrl: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const limits = { signal, deadlineMs: CALL_MS }
  const { version } = await client.call('version', limits, (rpc, signal) => rpc.version({ signal }))
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major === OLDEST[0] && minor < OLDEST[1]) {
    throw new Error(`Kubo ${version} is too old: Berth needs ${OLDEST.join('.')} or newer`)
  }
  await checkProfile(stream, signal)
  if (otherApiUrl) await checkIsAnother(client, otherApiUrl, signal)
}

/**
 * Checks that two addresses lead to two nodes. An unavailable node passes: its own start checks it against this one.
 * @throws Error naming the setting to change.
 */
async function checkIsAnother(client: KuboClient, otherApiUrl: string, signal: AbortSignal): Promise<void> {
  const limits = { signal, deadlineMs: CALL_MS }
  try {
    const [mine, theirs] = await Promise.all(
      [client, new KuboClient(otherApiUrl)].map((node) =>
        node.call('id', limits, (rpc, signal) => rpc.id({ signal })),
      ),
    )
    if (`${mine?.id}` !== `${theirs?.id}`) return
  } catch (error) {
    if (error instanceof StorageError || error instanceof KuboError) return
    throw error
  }
  throw new Error(SAME_NODE)
}

const PROBE_MS = 10_000
/** A block of the size that Berth writes. */
const PROBE_BYTES = 1_048_576
/** A pin without a block. */
const PROBE_PIN = CID.createV1(raw.code, identity.digest(new TextEncoder().encode('berth: is there room?')))

/**
 * Makes Kubo write a block that nobody else has, and a pin, and removes both again: after a failure to write its
 * datastore's log, Kubo accepts blocks but no pins until it is restarted.
 * @throws KuboError if Kubo rejects something, StorageError `unavailable` or `aborted`.
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
