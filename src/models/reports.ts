/** Takes the reports of agent proxies: moves amounts from leases to the spending, in one transaction. */
import {
  LEASE_MS,
  type LeaseReport,
  type SyncRequest,
  type UsageRecord,
} from '../agent-proxy/model/protocol.ts'
import { lock } from '../db/advisory-locks.ts'
import { type Connection, type Pool, type Queryable, transaction } from '../db/pool.ts'
import {
  addModelSpending,
  adoptModelLeases,
  findLeaseWorkspaces,
  type LeaseRow,
  lockModelLeases,
  noteModelBudgets,
  readModelLimits,
  updateModelLeases,
} from '../db/statements/models.ts'
import { storableText } from '../lib/read.ts'
import { readLimits } from './ledger.ts'
import { type Limit, percentsPassed, reachedData } from './limits.ts'
import { toPicodollars, toUsd } from './money.ts'

const NAME_LENGTH = 200

/** A report that was not taken before, with its lease. */
interface Fresh {
  lease: LeaseRow
  report: Pick<LeaseReport, 'records'>
}

/**
 * Takes reports. A repeated one changes nothing. Leases that have not expired last longer. Spending belongs to the day
 * of its lease, whenever it is reported.
 * @returns the ids of leases that have ended.
 */
export async function takeReports(
  pool: Pool,
  { proxy, leases: given }: Pick<SyncRequest, 'proxy' | 'leases'>,
): Promise<string[]> {
  if (given.length === 0) return []
  const leases = [...new Map(given.map((report) => [report.id, report])).values()]
  const ids = leases.map(({ id }) => id)
  const { rows: known } = await findLeaseWorkspaces.run(pool, ids)
  return transaction(pool, async (tx) => {
    if (known.length < ids.length) known.push(...(await adopt(tx, proxy, leases, known)))
    const workspaceOf = new Map(known.map(({ id, workspaceId }) => [id, workspaceId]))
    const spending = leases.filter(({ records }) => records.length > 0).map(({ id }) => workspaceOf.get(id))
    // In order: two proxies may report about the same workspaces. Without records, no budget can be reached.
    const workspaces = [...new Set(spending)].filter((id) => id !== undefined).sort()
    for (const id of workspaces) await lock(tx, 'modelBudgets', id)
    const locked = new Map((await lockModelLeases.run(tx, ids)).rows.map((lease) => [lease.id, lease]))
    const found = leases.flatMap((report) => {
      const lease = locked.get(report.id)
      return lease ? [{ lease, report }] : []
    })
    const fresh = found.filter(({ lease, report }) => report.seq > lease.seq)
    const written = found.map((one) => ({ ...one, state: stateAfter(one), isFresh: fresh.includes(one) }))
    await addSpending(tx, fresh)
    await updateModelLeases.run(tx, JSON.stringify(written.map(rowAfter)), LEASE_MS / 1000)
    if (workspaces.length > 0) await noteReached(tx, fresh)
    const going = new Set(written.filter(({ state }) => state === 'granted').map(({ lease }) => lease.id))
    return ids.filter((id) => !going.has(id))
  })
}

/** Records of a lease without a row still count, if its key still stands for an agent. */
async function adopt(tx: Connection, proxy: string, leases: LeaseReport[], known: { id: string }[]) {
  const have = new Set(known.map(({ id }) => id))
  const lost = leases.filter(({ id, records }) => records.length > 0 && !have.has(id))
  if (lost.length === 0) return []
  const named = lost.map(({ id, key }) => ({ id, key }))
  return (await adoptModelLeases.run(tx, proxy, JSON.stringify(named))).rows
}

interface Reported {
  lease: LeaseRow
  report: LeaseReport
}

/**
 * A lease ends with its day, if it has expired, or once its proxy learns that it was recalled. A report about one that
 * was charged as lost continues it.
 */
function stateAfter({ lease, report }: Reported): LeaseRow['state'] {
  const isFresh = report.seq > lease.seq
  if (lease.state === 'settled' && !(isFresh && hasOpen(lease))) return 'settled'
  if (report.done && isFresh) return 'settled'
  return lease.state === 'granted' && lease.isLive && lease.isToday ? 'granted' : 'ended'
}

function rowAfter({
  lease,
  report,
  state,
  isFresh,
}: Reported & { state: LeaseRow['state']; isFresh: boolean }) {
  const { id, usd, tokens, openUsd, openTokens, seq } = lease
  if (!isFresh) return { id, state, seq, usd, tokens, openUsd, openTokens }
  if (state === 'settled') return { id, state, seq: report.seq, ...NOTHING }
  const open = { openUsd: toUsd(report.open.usd), openTokens: String(report.open.tokens) }
  // The proxy knows since its last report that it may spend nothing more.
  const isOver = lease.state === 'ended' || !lease.isLive
  const left = isOver ? { usd: open.openUsd, tokens: open.openTokens } : leftOf(lease, report.records)
  return { id, state, seq: report.seq, ...left, ...open }
}
const NOTHING = { usd: '0', tokens: '0', openUsd: '0', openTokens: '0' }

function leftOf(lease: LeaseRow, records: readonly UsageRecord[]) {
  const spent = sumOf(records.map((record) => [record, 1]))
  const rest = (amount: bigint) => (amount > 0n ? amount : 0n)
  return {
    usd: toUsd(rest(toPicodollars(lease.usd) - spent.usd)),
    tokens: String(rest(BigInt(lease.tokens) - spent.tokens)),
  }
}

/** A record, and -1 if it is taken back. */
type Signed = readonly [record: UsageRecord, sign: 1 | -1]

function sumOf(records: readonly Signed[]) {
  const sum = { usd: 0n, tokens: 0n }
  for (const [{ usd, input, output }, sign] of records) {
    sum.usd += BigInt(sign) * BigInt(usd)
    sum.tokens += BigInt(sign) * (BigInt(input) + BigInt(output))
  }
  return sum
}

/** True if a lease holds an amount for calls in flight; for a settled lease, the amount that was charged as lost. */
export const hasOpen = ({ openUsd, openTokens }: LeaseRow) =>
  toPicodollars(openUsd) > 0n || BigInt(openTokens) > 0n

/** The record of what a dead proxy may have spent: an unknown number of calls, at most. */
export const lostRecord = ({ openUsd, openTokens }: LeaseRow): UsageRecord => ({
  ...{ provider: 'unknown', model: '', session: '', usd: Number(toPicodollars(openUsd)) },
  ...{ input: Number(openTokens), output: 0, cachedInput: 0, cacheWrite: 0, reasoning: 0 },
  ...{ estimated: true, status: 499, firstByteMs: 0, totalMs: 0 },
})

/** The records of a report, and what it takes back because it was charged as lost. */
function signedRecords({ lease, report }: Fresh): Signed[] {
  const records = report.records.map((record): Signed => [record, 1])
  return lease.state === 'settled' && hasOpen(lease) ? [...records, [lostRecord(lease), -1]] : records
}

/** Adds reports to the spending. */
export async function addSpending(tx: Connection, fresh: readonly Fresh[]): Promise<void> {
  const sums = new Map<string, ReturnType<typeof emptyRow>>()
  for (const { lease, report } of fresh)
    for (const [record, sign] of signedRecords({ lease, report })) {
      const [model, session] = [record.model, record.session].map((text) =>
        storableText(text).slice(0, NAME_LENGTH).toWellFormed(),
      ) as [string, string]
      const { provider } = record
      const key = JSON.stringify([lease.agentId, lease.day, provider, model, session])
      const row = sums.get(key) ?? emptyRow(lease, { provider, model, session })
      sums.set(key, row)
      addRecord(row, record, sign)
    }
  if (sums.size === 0) return
  const rows = [...sums.values()].map(({ usd, estimated_usd, ...row }) => ({
    ...row,
    usd: toUsd(usd),
    estimated_usd: toUsd(estimated_usd),
  }))
  await addModelSpending.run(tx, JSON.stringify(rows))
}

const emptyRow = (
  { workspaceId, agentId, day }: LeaseRow,
  of: { provider: string; model: string; session: string },
) => ({
  ...{ workspace_id: workspaceId, agent_id: agentId, day, ...of, requests: 0, errors: 0, usd: 0n },
  ...{ input: 0, output: 0, cached_input: 0, cache_write: 0, reasoning: 0, first_byte_ms: 0, total_ms: 0 },
  ...{ estimated: 0, estimated_usd: 0n },
})

function addRecord(row: ReturnType<typeof emptyRow>, record: UsageRecord, sign: 1 | -1): void {
  const usd = BigInt(sign) * BigInt(record.usd)
  row.requests += sign
  if (record.status >= 400) row.errors += sign
  row.usd += usd
  row.input += sign * record.input
  row.output += sign * record.output
  row.cached_input += sign * record.cachedInput
  row.cache_write += sign * record.cacheWrite
  row.reasoning += sign * record.reasoning
  row.first_byte_ms += sign * Math.round(record.firstByteMs)
  row.total_ms += sign * Math.round(record.totalMs)
  if (!record.estimated) return
  row.estimated += sign
  row.estimated_usd += usd
}

/** Writes an event for each percent of a limit that these reports have passed. */
export async function noteReached(tx: Connection, fresh: readonly Fresh[]): Promise<void> {
  const spending = fresh.filter(({ report }) => report.records.length > 0)
  const of = (name: 'workspaceId' | 'agentId') => [...new Set(spending.map(({ lease }) => lease[name]))]
  const { rows } = await readModelLimits.run(tx, of('workspaceId'), of('agentId'))
  const limits = await readLimits(tx, rows)
  await writeReached(
    tx,
    limits.flatMap((limit) => {
      const now = spending.filter(({ lease }) => countsFor(limit, lease))
      const added = sumOf(now.flatMap(signedRecords))[limit.unit]
      const before = { limit: limit.limit, spent: limit.spent - added }
      return percentsPassed(limit, before).map((percent) => ({ limit, percent }))
    }),
  )
}

const countsFor = ({ workspaceId, agentId, period }: Limit, lease: LeaseRow) =>
  lease.workspaceId === workspaceId &&
  (agentId === null || lease.agentId === agentId) &&
  (period === 'day' ? lease.isToday : lease.isThisMonth)

/**
 * Writes the events of limits that changed below what is already spent.
 * @param former the limit before the change, null if there was none.
 */
export function writeLowered(
  tx: Queryable,
  limits: readonly Limit[],
  former: (limit: Limit) => bigint | null,
): Promise<void> {
  const reached = limits
    .filter(({ limit }) => limit > 0n)
    .flatMap((limit) =>
      percentsPassed(limit, { limit: former(limit), spent: limit.spent }).map((percent) => ({
        limit,
        percent,
      })),
    )
  return writeReached(tx, reached)
}

/** Writes events of limits that were reached. */
async function writeReached(
  tx: Queryable,
  reached: readonly { limit: Limit; percent: number }[],
): Promise<void> {
  if (reached.length === 0) return
  const events = reached.map(({ limit, percent }) => {
    const { workspaceId, agentId } = limit
    return { workspaceId, agentId, data: reachedData(limit, percent) }
  })
  await noteModelBudgets.run(tx, JSON.stringify(events))
}
