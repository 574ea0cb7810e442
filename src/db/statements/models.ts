/**
 * Budgets for models. Hand-written SQL: a check compares sums of several tables as of one moment, under a lock, and by
 * the database's clock; a sync writes the spending of many agents in few statements. Amounts are exact: money is
 * `numeric` in US dollars, and passed as text.
 */
import type { LocalModel } from '../../lib/net/local-models.ts'
import { isoMillis, narrow, type Row, statement } from './statement.ts'

const numeric = narrow<string>('numeric')
const json = narrow<string>('text')

/** The current day and month in UTC. */
const TODAY = `(now() AT TIME ZONE 'UTC')::date`
const MONTH = `date_trunc('month', now() AT TIME ZONE 'UTC')::date`

/** The units that limit a call: budgets `b` of the agent and `w` of the workspace, and the plan `p`. */
const limited = (...budgets: string[]) => {
  const has = (unit: string) =>
    budgets.flatMap((one) => [`${one}.${unit}_per_day`, `${one}.${unit}_per_month`])
  const minute = budgets.map((one) => `${one}.requests_per_minute`)
  return `coalesce(${has('usd')}, p.model_usd_per_month) IS NOT NULL AS "limitsUsd",
      coalesce(${has('tokens')}, p.model_tokens_per_month) IS NOT NULL AS "limitsTokens",
      coalesce(${minute}) IS NOT NULL AS "limitsRequests"`
}

const HASHES = `ANY (ARRAY(SELECT decode(key, 'hex') FROM unnest($1::text[]) key))`

/**
 * The agents of the keys `$1` (SHA-256, hex), with their attached secrets whose names are in `$2`. A workspace's LLM key
 * stands for its workspace: `id` is the workspace's, and `agentId` is empty.
 */
export const findModelAgents = statement({
  name: 'model-agents',
  parameters: ['text[]', 'text[]'],
  columns: {
    key: 'text',
    id: 'uuid',
    agentId: 'text',
    workspaceId: 'uuid',
    credential: 'text?',
    isPaused: 'bool',
    localModel: narrow<LocalModel | null>('jsonb'),
    secrets: narrow<{ id: string; name: string; version: number }[]>('jsonb'),
    limitsUsd: 'bool',
    limitsTokens: 'bool',
    limitsRequests: 'bool',
  },
  text: `SELECT encode(a.model_key_hash, 'hex') AS key, a.id, a.agent_id AS "agentId", a.workspace_id AS "workspaceId",
      encode(a.proxy_key_hash, 'hex') AS credential, a.model_paused_at IS NOT NULL AS "isPaused",
      a.local_model AS "localModel",
      coalesce((SELECT jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'version', s.version) ORDER BY s.name)
        FROM agent_secret x JOIN secret s ON s.id = x.secret_id WHERE x.agent_id = a.id AND s.name = ANY ($2)),
        '[]') AS secrets,
      ${limited('b', 'w')}
    FROM agent a JOIN workspace ON workspace.id = a.workspace_id JOIN plan p ON p.name = workspace.plan
      LEFT JOIN model_budget b ON b.agent_id = a.id
      LEFT JOIN model_budget w ON w.workspace_id = a.workspace_id AND w.agent_id IS NULL
    WHERE a.model_key_hash = ${HASHES} AND a.deleted_at IS NULL
    UNION ALL SELECT encode(k.model_key_hash, 'hex'), k.workspace_id, '', k.workspace_id, NULL, false, NULL, '[]',
      ${limited('w')}
    FROM secret k JOIN workspace ON workspace.id = k.workspace_id JOIN plan p ON p.name = workspace.plan
      LEFT JOIN model_budget w ON w.workspace_id = k.workspace_id AND w.agent_id IS NULL
    WHERE k.model_key_hash = ${HASHES}`,
})

/**
 * The limits of the workspaces `$1`: those of their plans, their own, and those of their agents `$2`. `at` is the time
 * of the transaction.
 */
export const readModelLimits = statement({
  name: 'model-limits',
  parameters: ['uuid[]', 'uuid[]'],
  columns: {
    workspaceId: 'uuid',
    agentId: 'uuid?',
    scope: narrow<'plan' | 'workspace' | 'agent'>('text'),
    usdPerDay: 'text?',
    usdPerMonth: 'text?',
    tokensPerDay: 'text?',
    tokensPerMonth: 'text?',
    requestsPerMinute: 'int4?',
    /** Requests granted in the current minute. */
    minuteRequests: 'int4',
    updatedAt: 'timestamptz?',
    at: 'timestamptz',
  },
  text: `SELECT w.id AS "workspaceId", NULL::uuid AS "agentId", 'plan' AS scope, NULL AS "usdPerDay",
      p.model_usd_per_month::text AS "usdPerMonth", NULL AS "tokensPerDay",
      p.model_tokens_per_month::text AS "tokensPerMonth", NULL::integer AS "requestsPerMinute", 0 AS "minuteRequests",
      NULL::timestamptz AS "updatedAt", now() AS at
    FROM workspace w JOIN plan p ON p.name = w.plan WHERE w.id = ANY ($1)
    UNION ALL SELECT workspace_id, agent_id, CASE WHEN agent_id IS NULL THEN 'workspace' ELSE 'agent' END,
      usd_per_day::text, usd_per_month::text, tokens_per_day::text, tokens_per_month::text, requests_per_minute,
      CASE WHEN minute = date_trunc('minute', now()) THEN minute_requests ELSE 0 END, updated_at,
      now()
    FROM model_budget WHERE workspace_id = ANY ($1) AND (agent_id IS NULL OR agent_id = ANY ($2))`,
})
export type LimitsRow = Row<typeof readModelLimits.definition.columns>

/** The amount that a lease holds. An expired lease only holds the amount that its proxy last reported to be in flight. */
const held = (unit: 'usd' | 'tokens') =>
  `CASE WHEN expires_at > now() THEN greatest(${unit}, open_${unit}) ELSE open_${unit} END`

const USED = [
  ['', ''],
  ['held_', 'Held'],
  ['idle_', 'Idle'],
].flatMap(([kind, name]) =>
  [
    ['day', ' FILTER (WHERE today)'],
    ['month', ''],
  ].flatMap(([period, filter]) => [
    `coalesce(sum(${kind}usd)${filter}, 0)::text AS "${period}${name}Usd"`,
    `coalesce(sum(${kind}tokens)${filter}, 0)::text AS "${period}${name}Tokens"`,
  ]),
)

/**
 * The spending of this day and month of the workspaces `$1` (`agentId` is null) and of their agents `$2`, with what
 * leases hold, and what they could return at once (`idle`).
 */
export const readModelUse = statement({
  name: 'model-use',
  parameters: ['uuid[]', 'uuid[]'],
  columns: {
    workspaceId: 'uuid',
    agentId: 'uuid?',
    dayUsd: 'text',
    dayTokens: 'text',
    monthUsd: 'text',
    monthTokens: 'text',
    dayHeldUsd: 'text',
    dayHeldTokens: 'text',
    monthHeldUsd: 'text',
    monthHeldTokens: 'text',
    dayIdleUsd: 'text',
    dayIdleTokens: 'text',
    monthIdleUsd: 'text',
    monthIdleTokens: 'text',
  },
  text: `WITH used AS (
      SELECT workspace_id, agent_id, day = ${TODAY} AS today, usd, tokens, 0 AS held_usd, 0::bigint AS held_tokens,
        0 AS idle_usd, 0::bigint AS idle_tokens
      FROM model_day WHERE workspace_id = ANY ($1) AND day >= ${MONTH}
      UNION ALL SELECT workspace_id, agent_id, day = ${TODAY}, 0, 0, ${held('usd')}, ${held('tokens')},
        ${held('usd')} - open_usd, ${held('tokens')} - open_tokens
      FROM model_lease WHERE workspace_id = ANY ($1) AND state <> 'settled' AND day >= ${MONTH})
    SELECT workspace_id AS "workspaceId", agent_id AS "agentId", ${USED.join(', ')}
    FROM used GROUP BY GROUPING SETS ((workspace_id), (workspace_id, agent_id))
    HAVING grouping(agent_id) = 1 OR agent_id = ANY ($2)`,
})
export type UseRow = Row<typeof readModelUse.definition.columns>

/** Counts `$3` more requests in the current minute of the budgets of the workspace `$1` and of its agent `$2`. */
export const countModelRequests = statement({
  name: 'model-count-requests',
  parameters: ['uuid', 'uuid', 'int4'],
  columns: {},
  text: `UPDATE model_budget SET minute = date_trunc('minute', now()), minute_requests = $3
      + CASE WHEN minute = date_trunc('minute', now()) THEN minute_requests ELSE 0 END
    WHERE workspace_id = $1 AND (agent_id IS NULL OR agent_id = $2) AND requests_per_minute IS NOT NULL`,
})

/**
 * Adds the lease `$1` of the workspace `$2`, its agent `$3` and the proxy `$4`, for `$9` seconds. It has `$5` dollars and
 * `$7` tokens; `$6` and `$8` of these are reserved at once. Removes old leases that no longer count.
 */
export const insertModelLease = statement({
  name: 'model-lease-insert',
  parameters: ['uuid', 'uuid', 'uuid', 'uuid', numeric, numeric, 'int8', 'int8', 'float8'],
  columns: {},
  text: `WITH removed AS (
      DELETE FROM model_lease WHERE workspace_id = $2 AND day < ${TODAY} - 7
        AND (state = 'settled' OR day < ${MONTH}))
    INSERT INTO model_lease (id, workspace_id, agent_id, proxy, day, usd, open_usd, tokens, open_tokens, expires_at)
    VALUES ($1, $2, $3, $4, ${TODAY}, $5, $6, $7, $8, now() + make_interval(secs => $9))`,
})

/** Asks for all leases of the workspaces `$1` back, or only for those of the agent `$2`. */
export const recallModelLeases = statement({
  name: 'model-leases-recall',
  parameters: ['uuid[]', 'uuid?'],
  columns: {},
  text: `UPDATE model_lease SET state = 'recalled' WHERE id IN (
      SELECT id FROM model_lease WHERE workspace_id = ANY ($1) AND state = 'granted'
        AND ($2::uuid IS NULL OR agent_id = $2) ORDER BY id FOR UPDATE)`,
})

/** The workspaces of the leases `$1`. */
export const findLeaseWorkspaces = statement({
  name: 'model-lease-workspaces',
  parameters: ['uuid[]'],
  columns: { id: 'uuid', workspaceId: 'uuid' },
  text: 'SELECT id, workspace_id AS "workspaceId" FROM model_lease WHERE id = ANY ($1)',
})

/**
 * Adds leases of the proxy `$1` that reports name but no row has, such as after a restore: `$2` is JSON, `[{id, key}]`.
 * They are over, and exist so that a repeated report is recognised.
 */
export const adoptModelLeases = statement({
  name: 'model-lease-adopt',
  parameters: ['uuid', json],
  columns: { id: 'uuid', workspaceId: 'uuid' },
  text: `INSERT INTO model_lease
      (id, workspace_id, agent_id, proxy, day, state, usd, tokens, open_usd, open_tokens, expires_at)
    SELECT r.id, a.workspace_id, a.id, $1, ${TODAY}, 'ended', 0, 0, 0, 0, now()
    FROM jsonb_to_recordset($2::text::jsonb) r (id uuid, key text)
      JOIN (SELECT id, workspace_id, model_key_hash FROM agent
        UNION ALL SELECT workspace_id, workspace_id, model_key_hash FROM secret) a
        ON a.model_key_hash = decode(r.key, 'hex')
    ON CONFLICT DO NOTHING RETURNING id, workspace_id AS "workspaceId"`,
})

/** Leases that have ended `$1` seconds ago without a last report, at most `$2`. */
export const findLostLeases = statement({
  name: 'model-lease-lost',
  parameters: ['float8', 'int8'],
  columns: { id: 'uuid', workspaceId: 'uuid' },
  text: `SELECT id, workspace_id AS "workspaceId" FROM model_lease
    WHERE state <> 'settled' AND expires_at < now() - make_interval(secs => $1) ORDER BY id LIMIT $2`,
})

/** Locks the leases `$1`, and reads them. */
export const lockModelLeases = statement({
  name: 'model-lease-lock',
  parameters: ['uuid[]'],
  columns: {
    id: 'uuid',
    workspaceId: 'uuid',
    agentId: 'uuid',
    day: 'text',
    state: narrow<'granted' | 'recalled' | 'ended' | 'settled'>('text'),
    seq: 'int4',
    usd: 'text',
    tokens: 'text',
    openUsd: 'text',
    openTokens: 'text',
    isLive: 'bool',
    isToday: 'bool',
    isThisMonth: 'bool',
  },
  text: `SELECT id, workspace_id AS "workspaceId", agent_id AS "agentId", day::text, state, seq, usd::text, tokens::text,
      open_usd::text AS "openUsd", open_tokens::text AS "openTokens", expires_at > now() AS "isLive",
      day = ${TODAY} AS "isToday", day >= ${MONTH} AS "isThisMonth"
    FROM model_lease WHERE id = ANY ($1) ORDER BY id FOR UPDATE`,
})
export type LeaseRow = Row<typeof lockModelLeases.definition.columns>

/**
 * Writes leases: `$1` is JSON, `[{id, state, seq, usd, tokens, openUsd, openTokens}]`. Unless it has
 * expired, a lease lasts `$2` seconds from now.
 */
export const updateModelLeases = statement({
  name: 'model-lease-update',
  parameters: [json, 'float8'],
  columns: {},
  text: `UPDATE model_lease l SET state = r.state, seq = r.seq, usd = r.usd, tokens = r.tokens, open_usd = r."openUsd",
      open_tokens = r."openTokens",
      expires_at = CASE WHEN expires_at > now() THEN now() + make_interval(secs => $2) ELSE expires_at END
    FROM jsonb_to_recordset($1::text::jsonb) r
      (id uuid, state text, seq integer, usd numeric, tokens bigint, "openUsd" numeric, "openTokens" bigint)
    WHERE l.id = r.id`,
})

/** Beyond so many rows of an agent and day, new sessions share a row per model; beyond twice as many, models do too. */
const SPENDING_ROWS = 200

const SUMS = [
  ['requests', 'bigint'],
  ['errors', 'bigint'],
  ['input', 'bigint'],
  ['output', 'bigint'],
  ['cached_input', 'bigint'],
  ['cache_write', 'bigint'],
  ['reasoning', 'bigint'],
  ['usd', 'numeric'],
  ['first_byte_ms', 'bigint'],
  ['total_ms', 'bigint'],
  ['estimated', 'bigint'],
  ['estimated_usd', 'numeric'],
] as const
const SUM_NAMES = SUMS.map(([name]) => name)

/** Adds to the spending: `$1` is JSON, an array of rows with the names of the columns. */
export const addModelSpending = statement({
  name: 'model-spending-add',
  parameters: [json],
  columns: {},
  text: `WITH given AS (
      SELECT r.*, EXISTS (SELECT FROM model_spending s WHERE (s.workspace_id, s.agent_id, s.day, s.provider, s.model,
          s.session) = (r.workspace_id, r.agent_id, r.day, r.provider, r.model, r.session)) AS known,
        EXISTS (SELECT FROM model_spending s WHERE (s.workspace_id, s.agent_id, s.day, s.provider, s.model,
          s.session) = (r.workspace_id, r.agent_id, r.day, r.provider, r.model, '')) AS known_model,
        (SELECT count(*) FROM model_spending s
          WHERE (s.workspace_id, s.agent_id, s.day) = (r.workspace_id, r.agent_id, r.day))
          + row_number() OVER (PARTITION BY r.workspace_id, r.agent_id, r.day) AS rows
      FROM jsonb_to_recordset($1::text::jsonb) r (workspace_id uuid, agent_id uuid, day date, provider text, model text,
        session text, ${SUMS.map(([name, type]) => `${name} ${type}`).join(', ')}))
    INSERT INTO model_spending AS s (workspace_id, agent_id, day, provider, model, session, ${SUM_NAMES.join(', ')})
    SELECT workspace_id, agent_id, day, provider,
      CASE WHEN known OR known_model OR rows <= ${2 * SPENDING_ROWS} THEN model ELSE '' END AS model,
      CASE WHEN known OR rows <= ${SPENDING_ROWS} THEN session ELSE '' END AS session,
      ${SUM_NAMES.map((name) => `sum(${name})`).join(', ')}
    FROM given GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (workspace_id, agent_id, day, provider, model, session) DO UPDATE
      SET ${SUM_NAMES.map((name) => `${name} = s.${name} + EXCLUDED.${name}`).join(', ')}`,
})

/** Notes that budgets were reached: `$1` is JSON, `[{workspaceId, agentId, data}]`, `agentId` the row's id or null. */
export const noteModelBudgets = statement({
  name: 'event-model-budgets',
  parameters: [json],
  columns: {},
  text: `INSERT INTO event_pending (type, workspace_id, resource_type, resource_id, data)
    SELECT 'model.budget.reached', (value ->> 'workspaceId')::uuid, 'budget',
      coalesce(a.agent_id, value ->> 'workspaceId'), value -> 'data' || jsonb_build_object('agentId', a.agent_id)
    FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY reached (value, nth)
      LEFT JOIN agent a ON a.id = (value ->> 'agentId')::uuid
    ORDER BY nth`,
})

/** Whether the agent `$1` is paused, and its attached secrets. */
export const readModelAgent = statement({
  name: 'model-agent',
  parameters: ['uuid'],
  columns: {
    pausedAt: 'text?',
    pausedBy: 'uuid?',
    secrets: narrow<{ id: string; name: string; version: number }[]>('jsonb'),
  },
  text: `SELECT ${isoMillis('a.model_paused_at')} AS "pausedAt", a.model_paused_by AS "pausedBy",
      coalesce((SELECT jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'version', s.version) ORDER BY s.name)
        FROM agent_secret x JOIN secret s ON s.id = x.secret_id WHERE x.agent_id = a.id), '[]') AS secrets
    FROM agent a WHERE a.id = $1`,
})

/** Pauses the agent `$1` (`$2` is true) in the name of the user `$3`, or resumes it. An earlier pause stays. */
export const setModelPause = statement({
  name: 'model-pause',
  parameters: ['uuid', 'bool', 'uuid'],
  columns: {},
  text: `UPDATE agent SET model_paused_at = CASE WHEN $2 THEN now() END, model_paused_by = CASE WHEN $2 THEN $3::uuid END
    WHERE id = $1 AND (model_paused_at IS NULL) = $2`,
})
