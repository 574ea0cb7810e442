import { StorageError } from '../port.ts'
import { type Kubo, KuboClient } from './client.ts'
import { checkProfile } from './import.ts'
import { KuboError } from './kubo-errors.ts'

const CALL_MS = 10_000
/** The oldest Kubo whose GC cannot lock up and whose pin/add reports bytes. */
const OLDEST = [0, 43] as const
/** A node of the public network gives its blocks to everybody who knows a CID: no private content may be on it. */
export const SAME_NODE =
  'IPFS_PRIVATE_API_URL leads to the node of IPFS_API_URL: give the private network a Kubo of its own'

/**
 * Checks that a node can be used: its version, the DAGs that it builds, and that it is not the other network's.
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
 * Checks that two addresses lead to two nodes. A node that is away passes: its own start checks it against
 * this one.
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
