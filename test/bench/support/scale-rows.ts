/** Rows of a large Berth, created by SQL: files, the operations of the latest files, and agents. */
import { createHash } from 'node:crypto'
import type pg from 'pg'

/** The most operations, however many files there are, because operations are deleted after a while. */
const OPERATIONS = 1_000_000
const AGENTS = 10_000
/** Files of each workspace except the first, which has two thirds of all. */
const FILES_OF_SMALL = 1000
export const LARGE_WORKSPACE = '01900000-0000-7000-8000-0000000000ff'
/** The first of the small workspaces. */
export const SMALL_WORKSPACE = '01900000-00aa-7000-8000-000000000000'
/** Groups of the first workspace, one with about 100 files and one with a tenth of its files. */
export const GROUPS = {
  small: '01900000-00bb-7000-8000-000000000000',
  large: '01900000-00bb-7000-8000-000000000001',
}

/** The id of the file `i`, in the order of `i` as UUIDv7 are in the order of time. */
export const fileId = (i: number): string => `01900000-0001-7000-8000-${i.toString(16).padStart(12, '0')}`
const FILE_ID = `('01900000-0001-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid`

const WORDS = `(ARRAY['report', 'invoice', 'photo', 'scan', 'draft', 'letter', 'contract', 'lecture', 'recipe', 'backup',
  'minutes', 'sketch', 'poster', 'manual', 'index', 'archive', 'budget', 'survey', 'thesis', 'podcast'])`

/** The CID of the file `i`. */
export function cidOf(i: number): string {
  const md5 = (text: string) => createHash('md5').update(text).digest('hex')
  const digits = `${md5(`${i}`)}${md5(`b${i}`)}`.slice(0, 50)
  return `bafkreia${digits.replace(/./g, (digit) => 'abcdefghijklmnop'[Number.parseInt(digit, 16)] ?? '')}a`
}

/** A separate valid CID for each row: raw, SHA-256, with MD5 digits instead of the hash. */
const CID = `'bafkreia' || left(translate(md5(i::text) || md5('b' || i), '0123456789abcdef', 'abcdefghijklmnop'), 50) || 'a'`

/** Statuses of the pins. A workspace searches for only a few at a time, however many pins wait. */
const STATUS = `CASE WHEN i % 20 > 0 THEN 'pinned' WHEN NOT has_operation THEN 'expired'
  WHEN i / 20 % 4 = 0 THEN 'bad_host_node' WHEN i % 3 = 0 OR i > $2 - 5000 THEN 'searching' ELSE 'backfilled' END`

const FILES = `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, group_id, host_nodes, size,
    number_of_files, mime_type, created_at, pinned_at)
  SELECT ${FILE_ID}, CASE WHEN i % 3 > 0 THEN $1::uuid
      ELSE ('01900000-00aa-7000-8000-' || lpad(to_hex(i / 3 % greatest(1, $2::int / 3 / ${FILES_OF_SMALL})), 12, '0'))::uuid END,
    'public', ${STATUS}, cid, cid, ${WORDS}[1 + i % 20] || ' ' || ${WORDS}[1 + i / 20 % 20] || ' ' || i || '.pdf',
    jsonb_build_object('env', 'prod', 'n', i::text),
    CASE WHEN i % 3 = 0 THEN NULL WHEN i % greatest(1, $2::int / 150) = 1 THEN '${GROUPS.small}'::uuid
      WHEN i % 10 = 7 THEN '${GROUPS.large}'::uuid END,
    '{}', 1000, 1, CASE WHEN i = $2 / 2 + 1 THEN 'image/png' ELSE 'application/pdf' END, now(),
    CASE WHEN i % 20 > 0 THEN now() END
  FROM (SELECT i, i > $2 - ${OPERATIONS} AS has_operation, ${CID} AS cid FROM generate_series(1, $2) i) made`

/** Operations of pins that wait are due tomorrow, or wait for their first attempt behind the others. */
const OPERATIONS_OF_FILES = `INSERT INTO operation (id, workspace_id, kind, queue, target_id, concurrency_key, state,
    attempts, next_attempt_at, created_at, started_at, finished_at, idempotency_key)
  SELECT id, workspace_id, 'pin.add', 'pins', id, 'file:' || id,
    CASE WHEN status = 'pinned' THEN 'succeeded' WHEN status = 'bad_host_node' THEN 'failed' ELSE 'queued' END,
    CASE WHEN status = 'backfilled' THEN 0 ELSE 3 END,
    now() + CASE WHEN status = 'searching' THEN interval '1 day' ELSE interval '0' END, now(), now(),
    CASE WHEN status IN ('pinned', 'bad_host_node') THEN now() END,
    CASE WHEN id::text LIKE '%7' THEN id::text END
  FROM file WHERE id > $1`

const AGENT_ROWS = `INSERT INTO agent (id, agent_id, workspace_id, user_id, name, engine, engine_version, gateway_token, status,
    address)
  SELECT ('01900000-00cc-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'x' || lpad(i::text, 7, '0'), $1, $1,
    'agent ' || i, 'openclaw', '2026.9.6', md5('token' || i), CASE WHEN i % 100 = 0 THEN 'running' ELSE 'not_running' END,
    CASE WHEN i % 100 = 0 THEN '127.0.0.1:9' END
  FROM generate_series(1, $2::int) i`

const OPERATIONS_OF_AGENTS = `INSERT INTO operation (id, workspace_id, kind, queue, target_id, agent_id, concurrency_key, state,
    attempts, started_at, finished_at)
  SELECT gen_random_uuid(), workspace_id, 'agent.restart', 'agents', id, agent_id, 'agent:' || id, 'succeeded', 1, now(), now()
  FROM agent, generate_series(1, 5)`

/**
 * Fills a migrated database with `files` files, the operations of the latest million files, and 10,000 agents (fewer if
 * there are fewer than a million files). 95 of 100 files are pinned, and 99 of 100 agents are stopped. Two thirds
 * belong to the large workspace, the others to workspaces of 1,000 files each.
 */
export async function fillLarge(client: pg.Client, files: number, log = (_: string) => {}): Promise<void> {
  const workspace = LARGE_WORKSPACE
  await client.query('SET session_replication_role = replica') // no triggers: the sums are made at the end
  await client.query(`INSERT INTO file_group (id, workspace_id, network, name)
    VALUES ('${GROUPS.small}', '${workspace}', 'public', 'small'), ('${GROUPS.large}', '${workspace}', 'public', 'large')`)
  await withoutIndexes(client, 'file', log, async () => {
    await client.query(FILES, [workspace, files])
    log('files')
  })
  await withoutIndexes(client, 'operation', log, async () => {
    await client.query(OPERATIONS_OF_FILES, [fileId(Math.max(0, files - OPERATIONS))])
    await client.query(AGENT_ROWS, [workspace, Math.min(AGENTS, Math.ceil(files / 100))])
    await client.query(OPERATIONS_OF_AGENTS)
    log('operations and agents')
  })
  await client.query('SET session_replication_role = DEFAULT')
  await client.query(`INSERT INTO kept_content SELECT network, count(*), sum(size) FROM file
    WHERE status = 'pinned' AND removed_at IS NULL GROUP BY network`)
  await client.query(`INSERT INTO stored_content SELECT workspace_id, count(*), sum(size) FROM file
    WHERE status = 'pinned' AND removed_at IS NULL GROUP BY workspace_id`)
  await client.query('VACUUM ANALYZE')
  log('vacuum')
}

/** Runs `insert` on an empty table without its indexes, except the primary key, and recreates them. */
async function withoutIndexes(
  client: pg.Client,
  table: string,
  log: (text: string) => void,
  insert: () => Promise<void>,
): Promise<void> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
     WHERE indrelid = $1::regclass AND NOT indisprimary`,
    [table],
  )
  await client.query('BEGIN')
  await client.query(`TRUNCATE ${table}`)
  for (const { name } of rows) await client.query(`DROP INDEX ${name}`)
  await insert()
  await client.query('COMMIT')
  for (const { name, definition } of rows) {
    await client.query(definition)
    log(name)
  }
}
