import { StorageError } from '../port.ts'
import { checkProfile } from './add.ts'
import { KuboError, KuboRpc } from './rpc.ts'

const CALL_MS = 10_000
/** The oldest Kubo whose GC cannot lock up and whose pin/add reports bytes. */
const OLDEST = [0, 43] as const
/** Whoever knows a CID gets the blocks of it from a node of the public network. */
export const SAME_NODE =
  'IPFS_PRIVATE_API_URL leads to the node of IPFS_API_URL: give the private network a Kubo of its own'

/**
 * Checks that a node can be used: its version, the DAGs that it builds, and that it is not the other network's.
 * @throws StorageError `unavailable`, or Error naming what to fix.
 */
export async function checkNode(
  rpc: KuboRpc,
  otherApiUrl: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { Version } = await rpc.call<{ Version: string }>('version', {}, { signal, deadlineMs: CALL_MS })
  const [major = 0, minor = 0] = Version.split('.').map(Number)
  if (major === OLDEST[0] && minor < OLDEST[1]) {
    throw new Error(`Kubo ${Version} is too old: Berth needs ${OLDEST.join('.')} or newer`)
  }
  await checkProfile(rpc, signal)
  if (otherApiUrl) await checkIsAnother(rpc, otherApiUrl, signal)
}

/**
 * Checks that two addresses lead to two nodes. A node that is away passes: its own start checks it against
 * this one.
 * @throws Error naming the setting to change.
 */
async function checkIsAnother(rpc: KuboRpc, otherApiUrl: string, signal: AbortSignal): Promise<void> {
  const other = new KuboRpc(otherApiUrl)
  try {
    const options = { signal, deadlineMs: CALL_MS }
    const [mine, theirs] = await Promise.all(
      [rpc, other].map((node) => node.call<{ ID: string }>('id', {}, options)),
    )
    if (mine?.ID !== theirs?.ID) return
  } catch (error) {
    if (error instanceof StorageError || error instanceof KuboError) return
    throw error
  } finally {
    await other.close()
  }
  throw new Error(SAME_NODE)
}
