import { setTimeout as sleep } from 'node:timers/promises'
import { multiaddr } from '@multiformats/multiaddr'
import type { CID } from 'multiformats/cid'
import { badHostNode, type PinOptions, StorageError } from '../port.ts'
import { throttleProgress } from '../progress.ts'
import { type Kubo, type KuboClient, OFFLINE } from './client.ts'
import { asStorageError } from './kubo-errors.ts'

const CONNECT_MS = 10_000
/**
 * If no block arrives for this long, host nodes are dialled again, because a connection may have dropped. An existing
 * connection is closed once in such a silence, and twice in total, because other pins may be using it. As long as a
 * connection lasts, Kubo (0.43) stops sending to a peer that has not accepted a message or whose bitswap hangs. It also
 * does not ask again for a block whose request or response was lost, and asks a peer for nothing more in a session that
 * has dropped it after 16 late responses.
 */
const REDIAL_MS = 15_000
const MAX_HANG_UPS = 2
/** How long to look for providers if no host node could be reached, and how long connected peers get after that. */
const FIND_PROVIDERS_MS = 20_000
const GRACE_MS = 2_000
/** Kubo reports its progress twice a second, so a silence of this length is not a stall: Kubo has disappeared. */
const SILENCE_MS = 15_000

interface ProgressRow {
  Progress?: number
  Bytes?: number
  Pins?: string[]
}

/**
 * `pin/add`: retrieves a DAG and pins it under `name`, in one step.
 * @returns the blocks and bytes of the DAG, as far as Kubo counted them.
 * @throws StorageError with any code; `not_found` only with `offline`, which never uses the network.
 */
export async function retrieveAndPin(
  kubo: Kubo,
  cid: CID,
  name: string,
  options: PinOptions,
): Promise<{ blocks: number; bytes: number }> {
  const { stallMs, maxBytes, offline } = options
  const origins = [...new Set(options.origins)]
  const failed = new AbortController()
  const signal = AbortSignal.any([options.signal, failed.signal])
  const fail = (code: 'stalled' | 'too_large', message: string) =>
    failed.abort(new StorageError(code, message))
  const progress = throttleProgress(options.onProgress)
  const total = { blocks: 0, bytes: 0 }
  let totalBytes: number | null = null
  let pinned = false

  const stall = setTimeout(
    () => fail('stalled', `No block arrived for ${stallMs} ms (${total.blocks} before)`),
    stallMs,
  )

  // If blocks have arrived, the next one may be large and the connection slow.
  const patience = stallMs < 4 * REDIAL_MS ? 1 : 2
  let redials = 0
  let hangUps = 0
  const redial = setInterval(
    async () => {
      if (offline) return
      redials++
      if (redials === (total.blocks === 0 ? 1 : patience) && hangUps++ < MAX_HANG_UPS)
        await hangUp(kubo.client, origins, signal)
      await connect(kubo.client, origins, signal)
    },
    Math.min(REDIAL_MS, stallMs / 2),
  )

  const reachSomebody = async () => {
    if (offline || origins.length === 0) return
    const failures = await connect(kubo.client, origins, signal)
    if (failures.size < origins.length || signal.aborted) return
    if ((await findProvider(kubo, cid, origins, signal)) !== 'none') return
    await sleep(Math.min(GRACE_MS, stallMs / 2), undefined, { signal, ref: false }).catch(() => {})
    if (total.blocks === 0) failed.abort(badHostNode(failures))
  }

  progress.report({ phase: 'searching', ...total, totalBytes: null })
  void reachSomebody()
  try {
    const params = { arg: `${cid}`, recursive: true, progress: true, name, offline }
    for await (const row of kubo.stream.rows<ProgressRow>('pin/add', params, {
      signal,
      idleMs: SILENCE_MS,
    })) {
      const blocks = row.Progress ?? 0
      if (blocks > total.blocks) {
        if (total.blocks === 0)
          void announcedBytes(kubo.client, cid, signal).then((size) => (totalBytes = size))
        Object.assign(total, { blocks, bytes: row.Bytes ?? 0 })
        stall.refresh()
        redial.refresh()
        redials = 0
        progress.report({ phase: 'retrieving', ...total, totalBytes })
      }
      if (maxBytes != null && total.bytes > maxBytes)
        fail('too_large', `The DAG has more than ${maxBytes} bytes`)
      pinned ||= row.Pins !== undefined
    }
    failed.signal.throwIfAborted()
  } catch (error) {
    options.signal.throwIfAborted()
    if (failed.signal.aborted) throw failed.signal.reason
    throw asStorageError(error)
  } finally {
    clearTimeout(stall)
    clearInterval(redial)
    failed.abort()
  }
  if (!pinned) throw new StorageError('unavailable', 'Kubo ended pin/add without a result')
  progress.flush()
  return total
}

/** Connects Kubo to the host nodes. @returns the error of each that it did not reach. */
async function connect(
  client: KuboClient,
  origins: string[],
  signal: AbortSignal,
): Promise<Map<string, unknown>> {
  const limits = { signal, deadlineMs: CONNECT_MS }
  const failures = new Map<string, unknown>()
  await Promise.all(
    origins.map((origin) =>
      client
        .call('swarm/connect', limits, (rpc, signal) => rpc.swarm.connect(multiaddr(origin), { signal }))
        .catch((error) => failures.set(origin, error)),
    ),
  )
  return failures
}

/** Closes Kubo's connections to the host nodes, if it has any. */
async function hangUp(client: KuboClient, origins: string[], signal: AbortSignal): Promise<void> {
  const limits = { signal, deadlineMs: CONNECT_MS }
  await Promise.allSettled(
    origins.map((origin) =>
      client.call('swarm/disconnect', limits, (rpc, signal) =>
        rpc.swarm.disconnect(multiaddr(origin), { signal }),
      ),
    ),
  )
}

interface RoutingRow {
  Type: number
  Responses: { ID: string }[] | null
}
/** Types of go-libp2p's query events: a peer responded, and a provider was found. */
const PEER_RESPONSE = 1
const PROVIDER = 4

/**
 * Asks Kubo's routing for a provider other than the host nodes, which are known to be unavailable. An empty result does
 * not prove `none`: Kubo also returns it if its routers cannot be reached. Only a peer that answered the query, or a
 * Kubo without routing, proves it.
 */
async function findProvider(
  { client, stream }: Kubo,
  cid: CID,
  origins: string[],
  signal: AbortSignal,
): Promise<'found' | 'none' | 'unknown'> {
  const away = new Set(origins.map((origin) => origin.slice(origin.lastIndexOf('/') + 1)))
  try {
    let answered = false
    const options = { signal, deadlineMs: FIND_PROVIDERS_MS }
    for await (const row of stream.rows<RoutingRow>('routing/findprovs', { arg: `${cid}` }, options)) {
      if (row.Type === PROVIDER && row.Responses?.some(({ ID }) => !away.has(ID))) return 'found'
      answered ||= row.Type === PEER_RESPONSE
    }
    return answered || !(await hasRouting(client, signal)) ? 'none' : 'unknown'
  } catch {
    return 'unknown'
  }
}

async function hasRouting(client: KuboClient, signal: AbortSignal): Promise<boolean> {
  const limits = { signal, deadlineMs: CONNECT_MS }
  const type = await client.call('config', limits, (rpc, signal) =>
    rpc.config.get('Routing.Type', { signal }),
  )
  return type !== 'none'
}

/** The size of the whole DAG in bytes, as announced by its root; null if it announces none. */
async function announcedBytes(client: KuboClient, cid: CID, signal: AbortSignal): Promise<number | null> {
  const stat = await client
    .call('files/stat', { signal, deadlineMs: CONNECT_MS }, (rpc, signal) =>
      rpc.files.stat(`/ipfs/${cid}`, { signal, ...OFFLINE }),
    )
    .catch(() => null)
  return stat?.cumulativeSize ?? null
}
