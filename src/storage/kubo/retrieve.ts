import { setTimeout as sleep } from 'node:timers/promises'
import type { CID } from 'multiformats/cid'
import { type PinOptions, StorageError } from '../port.ts'
import { throttleProgress } from '../progress.ts'
import { asStorageError } from './errors.ts'
import type { KuboRpc } from './rpc.ts'

const CONNECT_MS = 10_000
/** How long providers are looked for when no host node could be reached, and how long connected peers then get. */
const FIND_PROVIDERS_MS = 20_000
const GRACE_MS = 2_000
/** Kubo reports its progress twice a second, so a silence of this length is not a stall: Kubo is gone. */
const SILENCE_MS = 15_000

interface ProgressRow {
  Progress?: number
  Bytes?: number
  Pins?: string[]
}

/**
 * `pin/add`: retrieves a DAG and pins it under `name`, in one step.
 * @returns the blocks and bytes of the DAG, as far as Kubo counted them.
 * @throws StorageError of every code; `not_found` only with `offline`, which never asks the network.
 */
export async function retrieveAndPin(
  rpc: KuboRpc,
  cid: CID,
  name: string,
  options: PinOptions,
): Promise<{ blocks: number; bytes: number }> {
  const { stallMs, maxBytes, offline, origins = [] } = options
  const failed = new AbortController()
  const signal = AbortSignal.any([options.signal, failed.signal])
  const fail = (code: 'stalled' | 'bad_host_node' | 'too_large', message: string) =>
    failed.abort(new StorageError(code, message))
  const progress = throttleProgress(options.onProgress)
  const total = { blocks: 0, bytes: 0 }
  let totalBytes: number | null = null
  let pinned = false

  const stall = setTimeout(
    () => fail('stalled', `No block arrived for ${stallMs} ms (${total.blocks} before)`),
    stallMs,
  )

  const reachSomebody = async () => {
    if (offline || origins.length === 0 || (await connect(rpc, origins, signal)) > 0 || signal.aborted) return
    if ((await findProvider(rpc, cid, origins, signal)) !== 'none') return
    await sleep(Math.min(GRACE_MS, stallMs / 2), undefined, { signal, ref: false }).catch(() => {})
    if (total.blocks === 0)
      fail('bad_host_node', 'No host node could be reached, and nobody else provides the content')
  }

  progress.report({ phase: 'searching', ...total, totalBytes: null })
  void reachSomebody()
  try {
    const params = { arg: `${cid}`, recursive: true, progress: true, name, offline }
    for await (const row of rpc.rows<ProgressRow>('pin/add', params, { signal, idleMs: SILENCE_MS })) {
      const blocks = row.Progress ?? 0
      if (blocks > total.blocks) {
        if (total.blocks === 0) void announcedBytes(rpc, cid, signal).then((size) => (totalBytes = size))
        Object.assign(total, { blocks, bytes: row.Bytes ?? 0 })
        stall.refresh()
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
    failed.abort()
  }
  if (!pinned) throw new StorageError('unavailable', 'Kubo ended pin/add without a result')
  progress.flush()
  return total
}

/** Connects Kubo to the host nodes; how many it reached. */
async function connect(rpc: KuboRpc, origins: string[], signal: AbortSignal): Promise<number> {
  const results = await Promise.allSettled(
    origins.map((arg) => rpc.call('swarm/connect', { arg }, { signal, deadlineMs: CONNECT_MS })),
  )
  return results.filter(({ status }) => status === 'fulfilled').length
}

interface RoutingRow {
  Type: number
  Responses: { ID: string }[] | null
}
/** Of go-libp2p's query events: a peer answered, and a provider was found. */
const PEER_RESPONSE = 1
const PROVIDER = 4

/**
 * Whether Kubo's routing knows a provider that is none of the host nodes, which are known to be away.
 * An empty answer is no proof of `none`: Kubo gives it too when its routers cannot be reached. Only
 * a peer that answered the query, or a Kubo without routing, makes it one.
 */
async function findProvider(
  rpc: KuboRpc,
  cid: CID,
  origins: string[],
  signal: AbortSignal,
): Promise<'found' | 'none' | 'unknown'> {
  const away = new Set(origins.map((origin) => origin.slice(origin.lastIndexOf('/') + 1)))
  try {
    let answered = false
    const options = { signal, deadlineMs: FIND_PROVIDERS_MS }
    for await (const row of rpc.rows<RoutingRow>('routing/findprovs', { arg: `${cid}` }, options)) {
      if (row.Type === PROVIDER && row.Responses?.some(({ ID }) => !away.has(ID))) return 'found'
      answered ||= row.Type === PEER_RESPONSE
    }
    return answered || !(await hasRouting(rpc, signal)) ? 'none' : 'unknown'
  } catch {
    return 'unknown'
  }
}

async function hasRouting(rpc: KuboRpc, signal: AbortSignal): Promise<boolean> {
  const options = { signal, deadlineMs: CONNECT_MS }
  const { Value } = await rpc.call<{ Value: unknown }>('config', { arg: 'Routing.Type' }, options)
  return Value !== 'none'
}

/** What the root says about the size of its whole DAG, or null where it says nothing. */
async function announcedBytes(rpc: KuboRpc, cid: CID, signal: AbortSignal): Promise<number | null> {
  const params = { arg: `/ipfs/${cid}`, offline: true }
  const stat = await rpc
    .call<{ CumulativeSize: number }>('files/stat', params, { signal, deadlineMs: CONNECT_MS })
    .catch(() => null)
  return stat?.CumulativeSize ?? null
}
