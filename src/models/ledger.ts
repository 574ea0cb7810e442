/**
 * Grants leases to agent proxies. A lease is granted if the spending of each period, what all leases hold, and the new
 * lease are within each limit. All three are sums of rows, compared under a lock of the workspace.
 */
import { uuidv7 } from 'uuidv7'
import { type Amounts, type GrantAnswer, type GrantRequest, LEASE_MS } from '../agent-proxy/model/protocol.ts'
import { lock } from '../db/advisory-locks.ts'
import { type Connection, type Pool, type Queryable, transaction } from '../db/pool.ts'
import {
  countModelRequests,
  findModelAgents,
  insertModelLease,
  type LimitsRow,
  readModelLimits,
  readModelUse,
  recallModelLeases,
} from '../db/statements/models.ts'
import { endOf, type Limit, limitsOf, type Unit } from './limits.ts'
import { toUsd } from './money.ts'
import { budgetExceeded, creditsSpent, PAUSED, RECALLED, requestLimit, UNKNOWN_KEY } from './refusals.ts'

/**
 * A lease has what the request needs and this part of the rest, so that a proxy asks seldom, and leaves most of the
 * budget to others. If others need it, they recall it.
 */
const SHARE = 10n
/** The most that a lease has beyond the request's need: one dollar in picodollars, tokens, requests. */
const EXTRA = { usd: 10n ** 12n, tokens: 1_000_000n, requests: 100 }
const MINUTE_MS = 60_000

export class Ledger {
  readonly #pool: Pool
  /** The last grant of each workspace that is in progress: each takes one connection while it waits for the lock. */
  readonly #turns = new Map<string, Promise<unknown>>()

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** Grants a lease of at least what the next request needs, or says why not. */
  async grant({ proxy, key, need }: GrantRequest): Promise<GrantAnswer> {
    const agent = await findModelAgents.first(this.#pool, [key], [])
    if (!agent) return { refusal: UNKNOWN_KEY }
    if (agent.isPaused) return { refusal: PAUSED }
    const { id, workspaceId } = agent
    return this.#inTurn(workspaceId, () =>
      transaction(this.#pool, async (tx) => {
        await lock(tx, 'modelBudgets', workspaceId)
        return grantLocked(tx, { workspaceId, agentId: id, proxy, need })
      }),
    )
  }

  async #inTurn<T>(workspaceId: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(workspaceId) ?? Promise.resolve()).then(work, work)
    this.#turns.set(workspaceId, turn)
    try {
      return await turn
    } finally {
      if (this.#turns.get(workspaceId) === turn) this.#turns.delete(workspaceId)
    }
  }
}

interface Asked {
  workspaceId: string
  /** The workspace's own id for a call with its LLM key. */
  agentId: string
  proxy: string
  need: Amounts
}

async function grantLocked(
  tx: Connection,
  { workspaceId, agentId, proxy, need }: Asked,
): Promise<GrantAnswer> {
  const { rows } = await readModelLimits.run(tx, [workspaceId], [agentId])
  const at = rows[0]?.at ?? new Date()
  const limits = await readLimits(tx, rows)
  const needed = { usd: BigInt(need.usd), tokens: BigInt(need.tokens) }
  const short = limits.filter(({ unit, limit, spent, held }) => spent + held + needed[unit] > limit)
  const spent = short.find(({ unit, limit, spent, held, idle }) => spent + held - idle + needed[unit] > limit)
  const refuse = agentId === workspaceId ? creditsSpent : budgetExceeded
  if (spent) return { refusal: refuse(spent, needed[spent.unit]) }
  if (short.length > 0) {
    const ofAgent = short.every(({ scope }) => scope === 'agent')
    await recallModelLeases.run(tx, [workspaceId], ofAgent ? agentId : null)
    return { refusal: RECALLED }
  }
  const minuteEnd = Math.ceil((at.getTime() + 1) / MINUTE_MS) * MINUTE_MS
  const requestsForMs = minuteEnd - at.getTime()
  const counted = rows.filter(({ requestsPerMinute }) => requestsPerMinute !== null)
  const full = counted.find((row) => requestsLeft(row) < need.requests)
  if (full) return { refusal: requestLimit(full, Math.ceil(requestsForMs / 1000)) }
  const restOfMinute = Math.min(...counted.map((row) => requestsLeft(row) - need.requests))
  const requests = need.requests + Math.min(Math.floor(restOfMinute / Number(SHARE)), EXTRA.requests)
  if (counted.length > 0) await countModelRequests.run(tx, workspaceId, agentId, requests)
  const amounts = { usd: sizeOf('usd', needed.usd, limits), tokens: sizeOf('tokens', needed.tokens, limits) }
  const id = uuidv7()
  await insertModelLease.run(
    tx,
    ...([id, workspaceId, agentId, proxy, toUsd(amounts.usd), toUsd(needed.usd)] as const),
    Number(amounts.tokens),
    need.tokens,
    LEASE_MS / 1000,
  )
  const endsInMs = endOf('day', at).getTime() - at.getTime()
  const granted = { usd: Number(amounts.usd), tokens: Number(amounts.tokens), requests }
  return { lease: { id, ...granted, requestsForMs, endsInMs } }
}

/** The limits of one workspace or several, with what was used of them. */
export async function readLimits(tx: Queryable, rows: readonly LimitsRow[]): Promise<Limit[]> {
  if (limitsOf(rows, []).length === 0) return []
  const workspaces = [...new Set(rows.map(({ workspaceId }) => workspaceId))]
  const agents = rows.flatMap(({ agentId }) => agentId ?? [])
  return limitsOf(rows, (await readModelUse.run(tx, workspaces, agents)).rows)
}

const requestsLeft = ({ requestsPerMinute, minuteRequests }: LimitsRow) =>
  (requestsPerMinute ?? 0) - minuteRequests

/** The size of a lease in a unit. */
function sizeOf(unit: Unit, need: bigint, limits: readonly Limit[]): bigint {
  const shares = limits
    .filter((limit) => limit.unit === unit)
    .map(({ limit, spent, held }) => (limit - spent - held - need) / SHARE)
  return need + [...shares, EXTRA[unit]].reduce((least, share) => (share < least ? share : least))
}
