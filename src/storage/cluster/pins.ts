import { setTimeout as delay } from 'node:timers/promises'
import { CID } from 'multiformats/cid'
import { type KeptCid, type Replicas, StorageError } from '../port.ts'
import type { ClusterClient } from './client.ts'

const FIRST_POLL_MS = 50
const POLL_MS = 1_000
/** How often a pin that lacks replicas is given to Cluster again, which then replaces peers that are gone. */
const REASSIGN_MS = 5_000
const UNPIN_MS = 30_000
/** How long the list of present peers is used. */
const MEMBERS_MS = 10_000

export interface Replication {
  /** A pin counts as whole from so many replicas, including the own Kubo's. */
  min: number
  max: number
}

/** A pin in Cluster's shared state. */
interface Allocation {
  cid: string
  name: string
  /** Empty for a pin on every peer. */
  allocations: string[] | null
  replication_factor_min: number
}

interface Status {
  peer_map: Record<string, { peername: string; status: string; error: string }> | null
}

/** How many replicas CIDs need, by CIDv1, if these are more than the setting's minimum. */
export type ReplicasOf = (cids: string[]) => Promise<ReadonlyMap<string, number>>

export interface KeepOptions {
  stallMs: number
  signal: AbortSignal
  /** Is called whenever another number of peers has everything. */
  onReplicas?: (replicas: { pinned: number; wanted: number }) => void
}

/** CIDs whose number of replicas is looked up at once. */
const LOOKUP = 1000

export interface PeerId {
  id: string
  peername: string
  version: string
  error: string
  cluster_peers: string[] | null
  ipfs: { id?: string; error: string } | null
}

/**
 * Berth's pins in IPFS Cluster: one pin per CID, with Berth's name. Each is allocated to the peer next to Berth's Kubo
 * (which needs the blocks for reads) and to others. Cluster works asynchronously: its state says which peers should pin
 * a CID, and the status of each peer says whether it has.
 */
export class ClusterPins {
  readonly #client: ClusterClient
  readonly #name: string
  readonly #replication: Replication
  readonly #replicasOf: ReplicasOf
  readonly #lostMs: number
  /** The peer next to Berth's Kubo. */
  own = ''
  /** Since which look each known peer has been absent; undefined while it is present. */
  readonly #absentSince = new Map<string, number | undefined>()
  #membersAt = 0

  /** @param lostMs How long a peer has to be gone until its replicas no longer count. */
  constructor(
    client: ClusterClient,
    options: { name: string; replication: Replication; replicasOf: ReplicasOf; lostMs: number },
  ) {
    this.#client = client
    this.#name = options.name
    this.#replication = options.replication
    this.#replicasOf = options.replicasOf
    this.#lostMs = options.lostMs
  }

  /** The identity of the peer, and which others are present. */
  async id(signal: AbortSignal): Promise<PeerId> {
    const id = await this.#client.call<PeerId>('GET', '/id', { signal })
    if (!id) throw new StorageError('unavailable', 'IPFS Cluster answered GET /id with 404')
    this.#membersAt = Date.now()
    const present = id.cluster_peers ?? []
    for (const [peer, since] of this.#absentSince) this.#absentSince.set(peer, since ?? this.#membersAt)
    for (const peer of present) this.#absentSince.set(peer, undefined)
    return id
  }

  /** The known peers that are not present, each with the time of the first look that did not find it. */
  absent(): [peer: string, since: number][] {
    return [...this.#absentSince].flatMap(([peer, since]) => (since === undefined ? [] : [[peer, since]]))
  }

  /** True if Cluster should keep a CID for Berth: on the own Kubo, and with enough replicas on peers that exist. */
  async has(cid: CID, signal: AbortSignal): Promise<boolean> {
    await this.#lookForPeers(signal)
    const [pin, wanted] = await Promise.all([this.#allocation(cid, signal), this.#wanted(cid)])
    if (this.#isWhole(pin, wanted)) return true
    if (!pin?.allocations?.some((peer) => this.#isLost(peer))) return false
    // It may have returned since the last look.
    await this.id(signal)
    return this.#isWhole(pin, wanted)
  }

  /** Every CID that Cluster lists under Berth's name. */
  async *list(signal: AbortSignal): AsyncGenerator<KeptCid> {
    await this.id(signal)
    const rows = this.#client.rows<Allocation>('/allocations', { signal, params: { filter: 'pin' } })
    let batch: Allocation[] = []
    for await (const row of rows) {
      if (row.name === this.#name) batch.push(row)
      if (batch.length < LOOKUP) continue
      yield* await this.#kept(batch)
      batch = []
    }
    yield* await this.#kept(batch)
  }

  async #kept(pins: Allocation[]): Promise<KeptCid[]> {
    const cids = pins.map(({ cid }) => CID.parse(cid).toV1())
    const replicas = await this.#replicasOf(cids.map((cid) => `${cid}`))
    return pins.map((pin, i) => {
      const cid = cids[i] as CID
      return { cid, isWhole: this.#isWhole(pin, this.#atLeast(replicas.get(`${cid}`))) }
    })
  }

  /** The peers that keep a CID or should, and how many have to. */
  async replicas(cid: CID, signal: AbortSignal): Promise<Replicas> {
    const [wanted, { peer_map: peers }] = await Promise.all([this.#wanted(cid), this.#status(cid, signal)])
    const all = Object.entries(peers ?? {}).filter(([, { status }]) => status !== 'remote')
    return {
      wanted,
      peers: all.map(([id, { peername, status, error }]) => ({
        name: peername || id,
        status: status === 'pinned' ? 'pinned' : /error/.test(status) ? 'failed' : 'pending',
        error: error || null,
      })),
    }
  }

  /**
   * Gives a pin to Cluster and waits until enough replicas are pinned. Peers that are retrieving blocks may take their
   * time: Cluster itself ends a pin that gets no blocks.
   * @throws StorageError `unavailable` if no peer has made progress for `stallMs`: the pin stays, and the next attempt
   *   continues.
   */
  async keep(cid: CID, { stallMs, signal, onReplicas }: KeepOptions): Promise<void> {
    await this.#lookForPeers(signal)
    const [existing, wanted] = await Promise.all([this.#allocation(cid, signal), this.#wanted(cid)])
    if (!this.#isWhole(existing, wanted)) await this.#claim(cid, existing, wanted, signal)
    let [pinned, progressAt, claimedAt] = [-1, Date.now(), Date.now()]
    /** Peers whose attempt failed: another attempt does not count as progress. */
    const failed = new Set<string>()
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, POLL_MS)) {
      const status = await this.#status(cid, signal)
      const peers = Object.entries(status.peer_map ?? {}).filter(([, peer]) => peer.status !== 'remote')
      const whole = peers.filter(([, peer]) => peer.status === 'pinned').map(([id]) => id)
      if (whole.length !== pinned) onReplicas?.({ pinned: whole.length, wanted })
      if (whole.length >= wanted && whole.includes(this.own)) return
      const lacking = peers.filter(([, { status }]) => status !== 'pinned')
      const atWork = lacking.filter(([, { status }]) => status === 'pinning' || status === 'pin_queued')
      const now = Date.now()
      if (whole.length > pinned || atWork.some(([id]) => !failed.has(id))) progressAt = now
      pinned = whole.length
      for (const entry of lacking) if (!atWork.includes(entry)) failed.add(entry[0])
      if (now - progressAt > stallMs) throw tooFew(cid, { pinned, wanted }, lacking)
      if (atWork.length < lacking.length || peers.length < wanted) {
        if (now - claimedAt > REASSIGN_MS) {
          await this.#claim(cid, await this.#allocation(cid, signal), wanted, signal)
          claimedAt = now
        }
      }
      await delay(pollMs, undefined, { signal })
    }
  }

  /**
   * Releases a pin, and waits until the own peer has removed it from Kubo: a pin made afterwards stays.
   * @returns false if Cluster has no pin of Berth's.
   */
  async release(cid: CID, signal: AbortSignal): Promise<boolean> {
    const pin = await this.#allocation(cid, signal)
    if (pin?.name !== this.#name) return false
    await this.#client.call('DELETE', `/pins/${cid}`, { signal })
    const deadline = Date.now() + UNPIN_MS
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, POLL_MS)) {
      const { peer_map: peers } = await this.#status(cid, signal, { local: 'true' })
      const { status = 'unpinned', error = '' } = Object.values(peers ?? {})[0] ?? {}
      // If the removal failed, the caller removes the pin from the own Kubo itself.
      if (status === 'unpinned' || status === 'unpin_error') return true
      if (Date.now() > deadline)
        throw new StorageError('unavailable', `IPFS Cluster still has ${cid}: ${status} ${error}`)
      await delay(pollMs, undefined, { signal })
    }
  }

  /** Writes a pin into Cluster's state. */
  async #claim(cid: CID, existing: Allocation | null, min: number, signal: AbortSignal): Promise<void> {
    let current = existing?.allocations ?? []
    // Cluster leaves the peers of an existing pin as they are while they are enough, so one more has to be wanted. The
    // way over a deletion would leave the content without any pin for a moment.
    if (current.length > 0 && !current.includes(this.own))
      current = (await this.#addOwn(cid, current.length + 1, signal)).allocations ?? []
    // If it had more peers than that, Cluster would drop any of them.
    const max = Math.max(this.#replication.max, min, current.length)
    const made = await this.#put(cid, { min, max }, signal)
    if (made.allocations?.includes(this.own)) return
    throw new StorageError('unavailable', 'The peer of IPFS Cluster next to Kubo takes no pins now')
  }

  /** Adds the own peer to a pin: with as many peers as are present and one more. */
  async #addOwn(cid: CID, most: number, signal: AbortSignal): Promise<Allocation> {
    for (let count = most; ; count--) {
      try {
        return await this.#put(cid, { min: count, max: count }, signal)
      } catch (error) {
        if (count === 1 || !/not enough peers/.test((error as Error).message)) throw error
      }
    }
  }

  async #put(cid: CID, { min, max }: Replication, signal: AbortSignal): Promise<Allocation> {
    const params = {
      name: this.#name,
      'replication-min': `${min}`,
      'replication-max': `${max}`,
      'user-allocations': this.own,
    }
    const pin = await this.#client.call<Allocation>('POST', `/pins/${cid}`, { signal, params })
    if (!pin) throw new StorageError('unavailable', `IPFS Cluster answered POST /pins/${cid} with 404`)
    return pin
  }

  #allocation(cid: CID, signal: AbortSignal): Promise<Allocation | null> {
    return this.#client.call<Allocation>('GET', `/allocations/${cid}`, { signal })
  }

  async #status(cid: CID, signal: AbortSignal, params?: Record<string, string>): Promise<Status> {
    const status = await this.#client.call<Status>('GET', `/pins/${cid}`, {
      signal,
      ...(params && { params }),
    })
    return status ?? { peer_map: null }
  }

  #isWhole(pin: Allocation | null, wanted: number): boolean {
    if (pin?.name !== this.#name || !pin.allocations?.includes(this.own)) return false
    return pin.allocations.filter((peer) => !this.#isLost(peer)).length >= wanted
  }

  async #wanted(cid: CID): Promise<number> {
    const replicas = await this.#replicasOf([`${cid.toV1()}`])
    return this.#atLeast(replicas.get(`${cid.toV1()}`))
  }

  #atLeast(replicas = 0): number {
    return Math.max(this.#replication.min, replicas)
  }

  #isLost(peer: string): boolean {
    // A peer that this process has never seen counts from the first question.
    if (!this.#absentSince.has(peer)) this.#absentSince.set(peer, this.#membersAt)
    const since = this.#absentSince.get(peer)
    // From one look to another: a peer that a single look missed is not lost, however late that look was.
    return since !== undefined && this.#membersAt - since > this.#lostMs
  }

  async #lookForPeers(signal: AbortSignal): Promise<void> {
    if (Date.now() - this.#membersAt > Math.min(MEMBERS_MS, this.#lostMs)) await this.id(signal)
  }
}

function tooFew(
  cid: CID,
  { pinned, wanted }: { pinned: number; wanted: number },
  lacking: [string, { peername: string; status: string; error: string }][],
): StorageError {
  const reasons = lacking.map(([id, { peername, status, error }]) =>
    `${peername || id}: ${status} ${error}`.trim().slice(0, 200),
  )
  const why = reasons.join('; ')
  return new StorageError(
    'unavailable',
    `IPFS Cluster has ${pinned} of ${wanted} replicas of ${cid} (${why})`,
  )
}
