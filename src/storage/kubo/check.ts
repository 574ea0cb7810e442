import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { StorageError } from '../port.ts'
import { KuboClient, OFFLINE } from './client.ts'
import { checkProfile, multipart, single } from './import.ts'
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
  kubo: KuboClient,
  otherApiUrl: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const limits = { signal, deadlineMs: CALL_MS }
  const { Version: version } = await kubo.call<{ Version: string }>('version', {}, limits)
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major === OLDEST[0] && minor < OLDEST[1]) {
    throw new Error(`Kubo ${version} is too old: Berth needs ${OLDEST.join('.')} or newer`)
  }
  await checkProfile(kubo, signal)
  if (otherApiUrl) await checkIsAnother(kubo, otherApiUrl, signal)
}

interface Identity {
  ID: string
  AgentVersion: string
  /** Null if Kubo has none. */
  Addresses: string[] | null
}

/** A node's peer id, version and addresses. @throws KuboError, StorageError `unavailable` or `aborted`. */
export async function identify(kubo: KuboClient, signal: AbortSignal): Promise<Identity> {
  const identity = await kubo.call<Identity>('id', {}, { signal, deadlineMs: CALL_MS })
  if (identity.ID) return identity
  throw new StorageError('unavailable', 'Kubo answered id without a peer id')
}

/**
 * Checks that two addresses lead to two nodes. An unavailable node passes: its own start checks it against this one.
 * @throws Error naming the setting to change.
 */
async function checkIsAnother(kubo: KuboClient, otherApiUrl: string, signal: AbortSignal): Promise<void> {
  const other = new KuboClient(otherApiUrl)
  try {
    const [mine, theirs] = await Promise.all([identify(kubo, signal), identify(other, signal)])
    if (mine.ID !== theirs.ID) return
  } catch (error) {
    if (error instanceof StorageError || error instanceof KuboError) return
    throw error
  } finally {
    await other.close()
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
export async function probeRoom(kubo: KuboClient, signal: AbortSignal): Promise<void> {
  const limits = { signal, deadlineMs: PROBE_MS }
  const body = multipart(single('probe', Readable.from([randomBytes(PROBE_BYTES)])))
  const { Key } = await kubo.call<{ Key: string }>('block/put', {}, { ...limits, body })
  const removed = await kubo.call<{ Error?: string }>('block/rm', { arg: Key, force: true }, limits)
  if (removed.Error) throw new KuboError(removed.Error)
  const pin = { arg: `${PROBE_PIN}`, ...OFFLINE }
  await kubo.call('pin/add', pin, limits)
  await kubo.call('pin/rm', pin, limits)
}
