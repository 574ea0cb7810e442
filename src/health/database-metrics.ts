/**
 * Metrics of the whole deployment, read from PostgreSQL. No statement gets slower with more rows: counts use an index
 * and a limit, and sums are kept in tables (migration 0012).
 */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Pool } from '../db/pool.ts'
import { hasOwner, POOL_WORKSPACE } from '../db/statements/pool.ts'
import { coalesce } from '../lib/coalesce.ts'
import { orAborted } from '../lib/signals.ts'
import { catalog, OPERATION_KINDS, QUEUES } from '../operations/catalog.ts'
import { REPAIRS } from '../operations/repairs.ts'

/** Prometheus scrapes rarely, but there may be several scrapers. */
const CACHE_MS = 2000
const READ_MS = 4000
/** Limit for counting rows: a gauge at this value means that many or more. */
export const COUNT_LIMIT = 10_000

// The order is the index's. Each kind is a constant whose number of rows the planner knows: otherwise it would collect
// all rows instead of stopping at the limit.
const countOperations = (kind: string, state: string) =>
  `SELECT '${kind}' AS kind, '${state}' AS state, (SELECT count(*)::int FROM (
    SELECT FROM operation WHERE kind = '${kind}' AND state = '${state}'
    ORDER BY (attempts > 0), id LIMIT ${COUNT_LIMIT}) counted) AS value`

/** Each statement, by the metrics that it provides; the tests check their plans. */
export const STATEMENTS = {
  operations: {
    text: OPERATION_KINDS.flatMap((kind) => [
      countOperations(kind, 'queued'),
      countOperations(kind, 'running'),
    ]).join(' UNION ALL '),
    values: [],
  },
  oldest: {
    text: `SELECT kind, (SELECT extract(epoch FROM now() - created_at)::float FROM operation o
        WHERE o.kind = kinds.kind AND o.state = 'queued' AND (attempts > 0) IS FALSE ORDER BY o.id LIMIT 1) AS value
      FROM unnest($1::text[]) AS kinds (kind)`,
    values: [OPERATION_KINDS],
  },
  agents: {
    text: `SELECT status, (SELECT count(*)::int FROM (
        SELECT FROM agent a WHERE a.status = statuses.status AND a.deleted_at IS NULL AND ${hasOwner('a')}
        LIMIT ${COUNT_LIMIT}) counted) AS value
      FROM (VALUES ('starting'), ('running'), ('not_running')) AS statuses (status)`,
    values: [],
  },
  spares: {
    text: `SELECT status, (SELECT count(*)::int FROM agent a
        WHERE a.workspace_id = '${POOL_WORKSPACE}' AND a.status = statuses.status AND a.deleted_at IS NULL) AS value
      FROM (VALUES ('starting'), ('running')) AS statuses (status)`,
    values: [],
  },
  kept: {
    text: `SELECT network, sum(files)::float AS files, sum(bytes)::float AS bytes FROM (
        SELECT network, files, bytes FROM kept_content
        UNION ALL SELECT network, files, bytes FROM kept_content_change
        UNION ALL VALUES ('public', 0, 0), ('private', 0, 0)) AS kept GROUP BY network`,
    values: [],
  },
  collections: {
    text: `SELECT network, runs::float AS runs, removed_blocks::float AS "removedBlocks",
      removed_bytes::float AS "removedBytes" FROM garbage_collection`,
    values: [],
  },
  // The first row of the heap, which is nearly the oldest: no index covers it.
  events: {
    text: `SELECT coalesce(
      (SELECT extract(epoch FROM now() - created_at) FROM event_pending LIMIT 1), 0)::float AS value`,
    values: [],
  },
  repairs: { text: 'SELECT loop, reason, count::float AS value FROM repair_total', values: [] },
} satisfies Record<string, { text: string; values: unknown[] }>

const COLLECTED = {
  runs: ['berth_gc_runs_total', 'Collections of garbage in the whole deployment, by network.'],
  removedBlocks: [
    'berth_gc_removed_blocks_total',
    'Blocks that collections of garbage removed in the whole deployment, by network.',
  ],
  removedBytes: [
    'berth_gc_removed_bytes_total',
    'Bytes that collections of garbage freed in the whole deployment, by network.',
  ],
} as const

type Name = keyof typeof STATEMENTS
type Collected = keyof typeof COLLECTED
type Row = Record<string, string> & Record<'value' | 'files' | 'bytes' | Collected, number>

/** While the database is unavailable, these are left out of the response, which has all other metrics. */
export function addDatabaseMetrics(registry: Registry, pool: Pool): void {
  const registers = [registry]
  // The reads run one after another, so that they do not take several connections at once from requests.
  const readAll = coalesce(CACHE_MS, async () => {
    const found: Partial<Record<Name, Row[]>> = {}
    const reading = (async () => {
      for (const name of Object.keys(STATEMENTS) as Name[])
        found[name] = (await pool.query<Row>({ name: `metrics-${name}`, ...STATEMENTS[name] })).rows
    })()
    await orAborted(reading, AbortSignal.timeout(READ_MS)).catch(() => {})
    return found
  })
  const read = async (name: Name): Promise<Row[]> => (await readAll())[name] ?? []

  new Gauge({
    name: 'berth_operations',
    help: `Unfinished operations of the whole deployment, by kind and state; ${COUNT_LIMIT} stands for that many or more.`,
    labelNames: ['kind', 'state'],
    registers,
    async collect() {
      const rows = await read('operations')
      this.reset()
      for (const { kind = '', state = '', value } of rows) this.set({ kind, state }, value)
    },
  })
  new Gauge({
    name: 'berth_operation_oldest_seconds',
    help: 'Age of the oldest operation of the whole deployment that waits for its first attempt, by queue; 0 when none waits.',
    labelNames: ['queue'],
    registers,
    async collect() {
      const rows = await read('oldest')
      this.reset()
      if (rows.length === 0) return
      for (const queue of QUEUES) {
        const ages = rows.filter(({ kind }) => catalog[kind as keyof typeof catalog].queue === queue)
        this.set({ queue }, Math.max(0, ...ages.map(({ value }) => value ?? 0)))
      }
    },
  })
  new Gauge({
    name: 'berth_event_waiting_seconds',
    help: 'Age of an event that is not published yet, one of the oldest of the whole deployment; 0 when all are published.',
    registers,
    async collect() {
      const [row] = await read('events')
      this.remove()
      if (row) this.set(row.value)
    },
  })
  new Gauge({
    name: 'berth_agents',
    help: `Agents of the whole deployment, by status; ${COUNT_LIMIT} stands for that many or more.`,
    labelNames: ['status'],
    registers,
    async collect() {
      const rows = await read('agents')
      this.reset()
      for (const { status = '', value } of rows) this.set({ status }, value)
    },
  })
  new Gauge({
    name: 'berth_spares',
    help: 'Spare agents of the whole deployment, by status; a new agent takes over one that is running.',
    labelNames: ['status'],
    registers,
    async collect() {
      const rows = await read('spares')
      this.reset()
      for (const { status = '', value } of rows) this.set({ status }, value)
    },
  })
  for (const what of ['files', 'bytes'] as const)
    new Gauge({
      name: `berth_kept_${what}`,
      help: `${what === 'files' ? 'Files' : 'Bytes of the files'} that all workspaces keep, by network; content that two keep counts twice.`,
      labelNames: ['network'],
      registers,
      async collect() {
        const rows = await read('kept')
        this.reset()
        for (const row of rows) this.set({ network: row.network ?? '' }, row[what])
      },
    })
  for (const [figure, [name, help]] of Object.entries(COLLECTED))
    new Counter({
      name,
      help,
      labelNames: ['network'],
      registers,
      async collect() {
        const rows = await read('collections')
        this.reset()
        for (const row of rows) this.inc({ network: row.network ?? '' }, row[figure as Collected])
      },
    })
  new Counter({
    name: 'berth_reconcile_repairs_total',
    help: 'Repairs by the reconcilers of the whole deployment, by loop and reason; `lease expired` is an operation that another worker takes over.',
    labelNames: ['loop', 'reason'],
    registers,
    async collect() {
      const { repairs: rows } = await readAll()
      this.reset()
      if (!rows) return
      // Prometheus treats a first value as the start of counting: without a zero, it would miss the first repairs.
      for (const [loop, reasons] of Object.entries(REPAIRS))
        for (const reason of reasons) this.inc({ loop, reason }, 0)
      for (const { loop = '', reason = '', value } of rows) this.inc({ loop, reason }, value)
    },
  })
}
