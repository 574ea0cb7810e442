/**
 * How much work may be in progress at a time in one process: per kind, for one caller, one workspace and in total.
 * Additional work is rejected, not queued. The last quarter of a kind's places is reserved for holders that have few.
 * If all places are taken, a newcomer replaces the slowest transfer of the largest holder. `docs/settings.md` has the
 * table (`npm run docs:settings`).
 */
import { ApiError } from '../errors.ts'
import { type Transfer, TransferWatch } from './transfers.ts'

export interface Bound {
  /** The kind of work, as named in messages and the documentation. */
  name: string
  /**
   * Limit for one caller: an API key or an agent's own token, or a client's address on routes without a key. For work
   * on a CID or an agent, the limit for one of those. Null if callers are not counted.
   */
  caller: number | null
  /**
   * Limit for one workspace, lower than the total, so that a workspace at its limit leaves room for others. Null for
   * work before the workspace is known.
   */
  workspace: number | null
  process: number
  /** The reason for the limits, for the documentation. */
  reason: string
  /** True for bytes that pass as fast as a client sends or reads them: a transfer that is too slow is ended. */
  isTransfer?: true
}

const COST = 'Each reads its operation once a second.'

export const BOUNDS = {
  eventStreams: {
    name: 'event streams',
    caller: 32,
    workspace: 128,
    process: 512,
    reason: `A dashboard has a few in each tab. A stream of an operation reads it once a second; streams of events share their reads, and each holds a thousand events at most.`,
  },
  waits: {
    name: 'waits for operations',
    caller: 128,
    workspace: 256,
    process: 1024,
    reason: `A script that starts a hundred operations waits for all of them. ${COST} A request that has started an operation is not rejected: it returns without waiting.`,
  },
  connections: {
    name: 'connections',
    caller: 1024,
    workspace: null,
    process: 8192,
    reason:
      'Each is a file descriptor. Connections from proxies in BERTH_TRUST_PROXY are not counted, because they carry all clients.',
  },
  anonymousBodies: {
    name: 'JSON bodies without a key that are on their way',
    caller: 8,
    workspace: null,
    process: 64,
    isTransfer: true,
    reason: 'Each holds up to 16 KiB, for ten seconds at most.',
  },
  jsonBodies: {
    name: 'JSON bodies above 16 KiB that are on their way',
    caller: 64,
    workspace: 128,
    process: 256,
    isTransfer: true,
    reason:
      'Each holds up to 1 MiB until it has arrived completely, for a minute at most; a kilobyte of gzip is enough for that.',
  },
  uploads: {
    name: 'uploads',
    caller: 64,
    workspace: 128,
    process: 256,
    isTransfer: true,
    reason: 'Clients send about 20 in parallel. Each holds pieces of its file in memory.',
  },
  resumableUploads: {
    name: 'requests of resumable uploads',
    caller: 64,
    workspace: 128,
    process: 512,
    isTransfer: true,
    reason: 'As uploads; their bytes are written to disk as they arrive.',
  },
  carImports: {
    name: 'CAR imports',
    caller: null,
    workspace: 8,
    process: 16,
    reason: 'Each may hold up to 35 MB of links whose blocks have not arrived yet.',
  },
  downloads: {
    name: 'downloads',
    caller: 100,
    workspace: 120,
    process: 200,
    isTransfer: true,
    reason:
      'A browser requests up to 100 files at a time from one host. Each holds up to 2 MiB, one block, for a slow client, possibly a malicious one.',
  },
  dagDownloads: {
    name: 'downloads of more than one block',
    caller: 100,
    workspace: null,
    process: 200,
    reason:
      'The limit for one CID applies to all callers together: a DAG that is costly to walk leaves half of all downloads to others. Each also counts as a download.',
  },
  carDownloads: {
    name: 'downloads of CARs',
    caller: 16,
    workspace: 16,
    process: 32,
    reason:
      'Each holds up to 8 MiB for a slow client: blocks of up to 2 MiB that Kubo has sent. Each also counts as a download of more than one block.',
  },
  agentSockets: {
    name: 'WebSockets to agents',
    caller: 128,
    workspace: 1024,
    process: 4096,
    reason:
      'Browsers, command lines and bots of an owner keep theirs open for days. Each is two connections.',
  },
  greetings: {
    name: 'WebSockets to agents that have not sent a token',
    caller: 8,
    workspace: null,
    process: 512,
    reason:
      'Each is two connections for ten seconds at most, holds up to 80 KiB, and ends within milliseconds if the client has a token. One address must not take all places of an agent.',
  },
  agentGreetings: {
    name: 'WebSockets to one agent that have not sent a token',
    caller: 16,
    workspace: null,
    process: 512,
    reason:
      'The engine accepts 32 at a time from all of its clients together: half of them are left to clients that send a token with their request.',
  },
  agentRequests: {
    name: 'requests to agents',
    caller: 128,
    workspace: 512,
    process: 2048,
    reason: 'Chat and webhooks over HTTP: a response of the model may take minutes.',
  },
  modelCalls: {
    name: 'calls of models with an LLM key',
    caller: null,
    workspace: 256,
    process: 1024,
    reason: 'Each is two connections, while the model writes.',
  },
  visits: {
    name: "visits of agents' pages",
    caller: 256,
    workspace: 1024,
    process: 4096,
    reason:
      "Requests and WebSockets of visitors, separate from the owner's, so that they never lock the owner out. An office has one address.",
  },
  gitReads: {
    name: 'git clones and fetches',
    caller: 32,
    workspace: 64,
    process: 256,
    reason: 'The jobs of one CI run clone in parallel. Each is a process in an agent.',
  },
  gitPushes: {
    name: 'git pushes',
    caller: 16,
    workspace: 32,
    process: 128,
    reason: 'Pushes to one agent take turns. Each is a process in an agent.',
  },
  commands: {
    name: 'console commands',
    caller: 32,
    workspace: 64,
    process: 256,
    reason: 'Each is a process in an agent, and may hold 1 MiB of output.',
  },
  agentFiles: {
    name: "reads and uploads of agents' files",
    caller: 32,
    workspace: 64,
    process: 256,
    isTransfer: true,
    reason: 'Small files that an editor opens and saves together.',
  },
  repositoryReads: {
    name: "reads of other servers' repositories",
    caller: null,
    workspace: 3,
    process: 6,
    reason: 'For templates. Each is a git process that may fetch for minutes.',
  },
  domainChecks: {
    name: 'checks of domains',
    caller: null,
    workspace: 8,
    process: 32,
    reason: 'An agent has five domains at most. A DNS server may take seconds.',
  },
  exports: {
    name: 'exports of the audit',
    caller: 2,
    workspace: 4,
    process: 16,
    reason:
      'Each reads the database as fast as its client reads the response, and holds a page or two in memory.',
  },
  searches: {
    name: 'lists filtered by a part of a name, by key-value pairs, or in the audit',
    caller: null,
    workspace: 2,
    process: 5,
    reason:
      'Each reads at worst all rows of a workspace, for 1.5 seconds at most, on a connection from the pool that all requests share.',
  },
  hostLookups: {
    name: 'lookups of unknown hosts',
    caller: 8,
    workspace: null,
    process: 32,
    reason: 'Anyone can make up any number of hosts; each is one query.',
  },
  nameLookups: {
    name: 'lookups of names for TLS',
    caller: null,
    workspace: null,
    process: 32,
    reason: 'Only the TLS proxy asks; each is one query.',
  },
} as const satisfies Record<string, Bound>

export type BoundKind = keyof typeof BOUNDS

/** The subject of the work. A caller is identified by a key, or else by an address if that distinguishes callers. */
export interface Holder {
  cid?: string
  agentId?: string
  keyId?: string | undefined
  address?: string | undefined
  workspaceId?: string
}

/** The time after which there may be room again. */
const RETRY_AFTER_S = 5
/** The share of a kind's places that is reserved for holders with few. */
const RESERVED = 1 / 4
/** A holder has few if it has less than this share of a kind's places, or no place. */
const FEW = 1 / 64

/** Places that are counted together: all of a kind, a caller's, or a workspace's. */
interface Count {
  name: string
  most: number
  whose: string
}

export class Bounds {
  readonly #table: Record<BoundKind, Bound>
  /** Taken places, by kind and holder; holders without places are absent. */
  readonly #taken = new Map<string, number>()
  readonly #transfers = new TransferWatch()

  /** @param changes numbers that replace those of {@link BOUNDS}. */
  constructor(changes: { [kind in BoundKind]?: Partial<Bound> } = {}) {
    const entries = Object.entries(BOUNDS).map(([kind, bound]) => [
      kind,
      { ...bound, ...changes[kind as BoundKind] },
    ])
    this.#table = Object.fromEntries(entries)
  }

  /**
   * Runs `work` in its own place.
   * @param transfer its bytes, if it is a transfer.
   * @throws ApiError 429 while there is no free place, and whatever `work` throws.
   */
  async run<T>(kind: BoundKind, holder: Holder, work: () => Promise<T>, transfer?: Transfer): Promise<T> {
    const release = this.take(kind, holder, transfer)
    try {
      return await work()
    } finally {
      release()
    }
  }

  /**
   * Takes a place.
   * @returns a function that releases it; further calls do nothing.
   * @throws ApiError 429 naming the limit that is reached.
   */
  take(kind: BoundKind, holder: Holder, transfer?: Transfer): () => void {
    const own = this.#countsOf(kind, holder)
    const all: Count = { name: kind, most: this.#table[kind].process, whose: 'this server' }
    const full = own.find(({ name, most }) => this.#count(name) >= most)
    if (full) throw this.#refusal(kind, full)
    const held = Math.max(0, ...own.map(({ name }) => this.#count(name)))
    const kept = all.most - Math.floor(all.most * RESERVED)
    if (this.#count(kind) >= kept && held >= Math.max(1, all.most * FEW))
      throw this.#refusal(kind, {
        ...all,
        most: kept,
        whose: 'this server, which keeps the others for callers with few',
      })
    if (this.#count(kind) >= all.most && !this.#makeRoom(kind, own, held)) throw this.#refusal(kind, all)
    const names = [...own, all].map(({ name }) => name)
    for (const name of names) this.#taken.set(name, this.#count(name) + 1)
    let isTaken = true
    const release = () => {
      if (!isTaken) return
      isTaken = false
      forget?.()
      for (const name of names) {
        const left = this.#count(name) - 1
        if (left > 0) this.#taken.set(name, left)
        else this.#taken.delete(name)
      }
    }
    const isWatched = transfer && this.#table[kind].isTransfer
    const forget = isWatched && this.#transfers.add({ kind, names, transfer, release })
    return release
  }

  #count(name: string): number {
    return this.#taken.get(name) ?? 0
  }

  /** Ends the slowest transfer of the holder with the most places, if it has more than the caller. */
  #makeRoom(kind: BoundKind, own: Count[], held: number): boolean {
    const asking = new Set(own.map(({ name }) => name))
    let most = held + 1
    let largest: string | undefined
    for (const name of this.#transfers.holders(kind)) {
      const count = this.#count(name)
      if (name === kind || asking.has(name) || count <= most) continue
      most = count
      largest = name
    }
    return largest !== undefined && this.#transfers.endSlowest(kind, largest)
  }

  /** {@link take}, or undefined while there is no place. */
  tryTake(kind: BoundKind, holder: Holder): (() => void) | undefined {
    try {
      return this.take(kind, holder)
    } catch {
      return undefined
    }
  }

  /** How much work of a kind is in progress. */
  underWay(kind: BoundKind): number {
    return this.#taken.get(kind) ?? 0
  }

  #countsOf(kind: BoundKind, { cid, agentId, keyId, address, workspaceId }: Holder): Count[] {
    const { caller, workspace } = this.#table[kind]
    const callers = [
      { id: cid, whose: 'this CID' },
      { id: agentId, whose: 'this agent' },
      { id: keyId, whose: 'this key' },
      { id: address, whose: 'your address' },
    ]
    const one = callers.find(({ id }) => id !== undefined)
    const counts: Count[] = []
    if (caller !== null && one)
      counts.push({ name: `${kind} of ${one.whose}: ${one.id}`, most: caller, whose: one.whose })
    if (workspace !== null && workspaceId !== undefined)
      counts.push({ name: `${kind} of workspace ${workspaceId}`, most: workspace, whose: 'this workspace' })
    return counts
  }

  #refusal(kind: BoundKind, { most, whose }: Count): ApiError {
    const message = `Too many ${this.#table[kind].name} at a time: ${most} of ${whose}`
    return new ApiError(429, 'too_many_at_a_time', message, {
      headers: { 'retry-after': `${RETRY_AFTER_S}` },
    })
  }
}
