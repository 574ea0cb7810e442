/**
 * How much work may be under way at a time in one process: of each kind, for one caller, one workspace and all.
 * More work is refused, and does not queue. The last quarter of the places of a kind is for holders that have few, and a
 * newcomer takes the place of the slowest transfer of the largest holder if all are taken. `docs/settings.md` has the table
 * (`npm run docs:settings`).
 */
import { ApiError } from '../errors.ts'
import { type Transfer, TransferWatch } from './transfers.ts'

export interface Bound {
  /** The kind of work, as messages and the documentation call it. */
  name: string
  /**
   * Most of one caller: of an API key or an agent's own token, or of a client's address where no key is asked for;
   * of one CID or agent, for work on that. Null where they are not counted.
   */
  caller: number | null
  /**
   * Most of one workspace, fewer than there may be in all: one that fills its own leaves room for the others. Null for
   * what is done before a workspace is known.
   */
  workspace: number | null
  process: number
  /** The reason for the numbers, for the documentation. */
  reason: string
  /** True for bytes that pass as fast as a client sends or reads them: one that is too slow is ended. */
  isTransfer?: true
}

const COST = 'Each reads its operation once a second.'

export const BOUNDS = {
  eventStreams: {
    name: 'event streams',
    caller: 32,
    workspace: 128,
    process: 512,
    reason: `A dashboard has a few in each tab. Each of an operation reads it once a second; those of events share their reads, and each holds a thousand events at most.`,
  },
  waits: {
    name: 'waits for operations',
    caller: 128,
    workspace: 256,
    process: 1024,
    reason: `A script that starts a hundred operations waits for all of them. ${COST} A request that has started an operation is not refused: it does not wait.`,
  },
  connections: {
    name: 'connections',
    caller: 1024,
    workspace: null,
    process: 8192,
    reason:
      'Each is a file descriptor. Connections of proxies in BERTH_TRUST_PROXY are not counted: they bring all clients.',
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
      'Each holds up to 1 MiB until all of it has come, for a minute at most; a kilobyte of gzip is enough for that.',
  },
  uploads: {
    name: 'uploads',
    caller: 64,
    workspace: 128,
    process: 256,
    isTransfer: true,
    reason: 'Clients send some 20 side by side. Each holds pieces of its file in memory.',
  },
  resumableUploads: {
    name: 'requests of resumable uploads',
    caller: 64,
    workspace: 128,
    process: 512,
    isTransfer: true,
    reason: 'As uploads; their bytes go to the disk as they come.',
  },
  carImports: {
    name: 'CAR imports',
    caller: null,
    workspace: 8,
    process: 16,
    reason: 'Each may hold up to 35 MB, of links whose blocks are to come.',
  },
  downloads: {
    name: 'downloads',
    caller: 100,
    workspace: 120,
    process: 200,
    isTransfer: true,
    reason:
      'A browser asks one host for up to 100 files at a time. Each holds up to 2 MiB, one block, for a client that is slow, maybe on purpose.',
  },
  dagDownloads: {
    name: 'downloads of more than one block',
    caller: 100,
    workspace: null,
    process: 200,
    reason:
      'Of one CID, whoever asks for it: a DAG that is costly to walk leaves half of all downloads to others. Each is a download as well.',
  },
  carDownloads: {
    name: 'downloads of CARs',
    caller: 16,
    workspace: 16,
    process: 32,
    reason:
      'Each holds up to 8 MiB for a client that is slow: blocks of up to 2 MiB that Kubo has sent. Each is a download of more than one block as well.',
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
      'Each is two connections for ten seconds at most, holds up to 80 KiB, and is over in milliseconds where the client has a token. One address must not take all places of an agent.',
  },
  agentGreetings: {
    name: 'WebSockets to one agent that have not sent a token',
    caller: 16,
    workspace: null,
    process: 512,
    reason:
      'The engine takes 32 at a time from all its clients together: half of them are left to those who send a token with their request.',
  },
  agentRequests: {
    name: 'requests to agents',
    caller: 128,
    workspace: 512,
    process: 2048,
    reason: 'Chat and webhooks by HTTP: an answer of the model may take minutes.',
  },
  visits: {
    name: "visits of agents' pages",
    caller: 256,
    workspace: 1024,
    process: 4096,
    reason:
      "Requests and WebSockets of visitors, apart from the owner's: they never lock the owner out. An office has one address.",
  },
  gitReads: {
    name: 'git clones and fetches',
    caller: 32,
    workspace: 64,
    process: 256,
    reason: 'The jobs of one CI run clone side by side. Each is a process in an agent.',
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
    reason: 'For templates. Each is a git that may fetch for minutes.',
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
    reason: 'Each reads the database as fast as its client takes it, and holds a page or two in memory.',
  },
  searches: {
    name: 'lists filtered by a part of a name, by key-value pairs, or in the audit',
    caller: null,
    workspace: 2,
    process: 5,
    reason:
      'Each reads all rows of a workspace at worst, for 1.5 seconds at most, on a connection of the pool that all requests share.',
  },
  hostLookups: {
    name: 'lookups of unknown hosts',
    caller: 8,
    workspace: null,
    process: 32,
    reason: 'Anybody can make up any number of hosts; each is one query.',
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

/** For whom work is done, or on what. A caller has a key, or else an address where that tells callers apart. */
export interface Holder {
  cid?: string
  agentId?: string
  keyId?: string | undefined
  address?: string | undefined
  workspaceId?: string
}

/** The time after which there may be room again. */
const RETRY_AFTER_S = 5
/** The share of a kind's places that is kept for holders with few. */
const RESERVED = 1 / 4
/** A holder of fewer than this share of a kind's places, or of one, has few. */
const FEW = 1 / 64

/** Whose places are counted together: all of a kind, those of a caller, or those of a workspace. */
interface Count {
  name: string
  most: number
  whose: string
}

export class Bounds {
  readonly #table: Record<BoundKind, Bound>
  /** Places that are taken, by kind and by whom; who has none is not in it. */
  readonly #taken = new Map<string, number>()
  readonly #transfers = new TransferWatch()

  /** @param changes other numbers than those of {@link BOUNDS}. */
  constructor(changes: { [kind in BoundKind]?: Partial<Bound> } = {}) {
    const entries = Object.entries(BOUNDS).map(([kind, bound]) => [
      kind,
      { ...bound, ...changes[kind as BoundKind] },
    ])
    this.#table = Object.fromEntries(entries)
  }

  /**
   * Runs `work` in a place of its own.
   * @param transfer its bytes, if it is a transfer.
   * @throws ApiError 429 while there is no place, and what `work` throws.
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
   * @returns gives it back; may be called again, and does nothing then.
   * @throws ApiError 429 that names whose bound is reached.
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

  /** Ends the slowest transfer of the holder with the most places, if that has more than the one who asks. */
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

  /** How much of a kind is under way. */
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
