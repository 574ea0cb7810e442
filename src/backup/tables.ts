/** The rows of a backup: every table in PostgreSQL's COPY format, all as of one moment. */
import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { tryLockSession } from '../db/advisory-locks.ts'
import { type CopyConnection, quoteIdentifier } from '../db/copy-connection.ts'
import { isPartitioned, makePartition, type Partitioned, partitionsOf } from '../db/partitions.ts'
import type { Queryable } from '../db/pool.ts'
import { hasOwner } from '../db/statements/pool.ts'
import { type BackupWriter, type Manifest, NETWORKS, rootsFile, tableFile } from './layout.ts'
import { BackupError } from './store.ts'

const TURN_TRIES = 12
const TURN_MS = 250

/**
 * Tables that are not copied: what migrations write, what processes report about themselves, agents and this machine,
 * sums that triggers recompute from the rows of `file` and `model_spending`, and sign-ins that last only minutes.
 * The places of blocks in S3 are left out, because a backup contains the blocks.
 * Events and their deliveries are left out too, because followers have already seen what a restore takes back.
 */
const LEFT_OUT = [
  '_prisma_migrations',
  'restore_under_way',
  'worker',
  'engine_version',
  'agent_usage',
  'upload_reservation',
  'upload_part',
  'login_link',
  'passkey_challenge',
  'oidc_transaction',
  'kept_content',
  'kept_content_change',
  'stored_content',
  'stored_content_change',
  'model_day',
  'node_store',
  'node_pack',
  'node_block',
  'node_root',
  'node_mark',
  'event_pending',
  'event',
  'webhook_delivery',
]

/** Conditions for tables that are copied only in part. */
const ONLY: Record<string, string> = {
  // Backups do not include the bytes of unfinished uploads.
  upload: 'file_id IS NOT NULL OR refusal IS NOT NULL',
  // Spares have nothing to keep.
  agent: hasOwner('agent'),
  operation: hasOwner('operation'),
}

/** The roots that are pinned on a network, in order. */
const ROOTS = `SELECT cid_v1 AS cid FROM file WHERE network = '<network>' AND status = 'pinned' AND removed_at IS NULL
  UNION SELECT cid FROM held_content WHERE network = '<network>' ORDER BY cid`

/**
 * Makes this session the only one that writes backups, or reads parts of one, until it ends.
 * @throws BackupError if another process of this Berth is doing so.
 */
export async function takeTurn(client: CopyConnection): Promise<void> {
  // The session of a killed process may take a moment to end.
  for (let tries = 0; !(await tryLockSession(client as Queryable, 'backupFiles')); tries++) {
    if (tries === TURN_TRIES)
      throw new BackupError(
        'another process makes a backup of this Berth just now, or restores a part of one',
      )
    await delay(TURN_MS)
  }
}

/** Writes the currently pinned roots, one file per network. @returns the paths of the files. */
export async function writeRoots(client: CopyConnection, writer: BackupWriter): Promise<RootLists> {
  const lists = {} as RootLists
  for (const network of NETWORKS) {
    const stream = client.query(copyTo(`COPY (${ROOTS.replaceAll('<network>', network)}) TO STDOUT`))
    const path = await writer.write(rootsFile(network), stream)
    lists[network] = { path, count: stream.rowCount }
  }
  return lists
}

/** Files with the roots of each network, one root per line. */
export type RootLists = Record<'public' | 'private', { path: string; count: number }>

export interface Dumped extends Pick<Manifest, 'schema' | 'tables' | 'sequences'> {
  roots: RootLists
  /** Agents that are not deleted. */
  agents: string[]
}

/** Writes all rows and the list of what is pinned, as of one moment. */
export async function dumpTables(
  client: CopyConnection,
  writer: BackupWriter,
  onTable: (name: string, rows: number) => void,
): Promise<Dumped> {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const { rows: applied } = await client.query<{ name: string }>(
    `SELECT migration_name AS name FROM _prisma_migrations
     WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL ORDER BY name`,
  )
  const tables: Manifest['tables'] = []
  for (const { name, columns } of await readTables(client)) {
    if (LEFT_OUT.includes(name)) continue
    const where = ONLY[name] ? ` WHERE ${ONLY[name]}` : ''
    const stream = client.query(
      copyTo(`COPY (SELECT ${listOf(columns)} FROM ${quote(name)}${where}) TO STDOUT`),
    )
    await writer.write(tableFile(name), stream)
    tables.push({ name, columns, rows: stream.rowCount })
    onTable(name, stream.rowCount)
  }
  const { rows: sequences } = await client.query<{ name: string; value: string }>(
    `SELECT sequencename AS name, last_value::text AS value FROM pg_sequences
     WHERE schemaname = current_schema() AND last_value IS NOT NULL ORDER BY name`,
  )
  const { rows: agents } = await client.query<{ id: string }>(
    `SELECT agent_id AS id FROM agent WHERE deleted_at IS NULL AND ${hasOwner('agent')} ORDER BY id`,
  )
  const roots = await writeRoots(client, writer)
  await client.query('COMMIT')
  return {
    agents: agents.map(({ id }) => id),
    schema: applied.map(({ name }) => name),
    tables,
    sequences: Object.fromEntries(sequences.map(({ name, value }) => [name, value])),
    roots,
  }
}

/**
 * Replaces all rows with those of a backup, in the caller's transaction.
 * @param contentOf returns the rows of a table.
 * @throws Error if a table or a column is not in this schema, or a row does not fit.
 */
export async function loadTables(
  client: CopyConnection,
  { tables, sequences }: Pick<Manifest, 'tables' | 'sequences'>,
  contentOf: (table: string) => Readable,
  onTable: (name: string, rows: number) => void,
): Promise<void> {
  // Restored rows are not changes: the triggers must not create events for them.
  await client.query("SET LOCAL berth.without_events = 'on'")
  const here = (await readTables(client)).map(({ name }) => name)
  // The content of the backup has been stored here already, maybe in S3.
  const content = here.filter((name) => name.startsWith('node_'))
  const kept = ['_prisma_migrations', 'restore_under_way', ...content]
  const emptied = here.filter((name) => !kept.includes(name) && !isPartitioned(name))
  for (const name of here.filter(isPartitioned))
    for (const partition of await partitionsOf(client as Queryable, name))
      await client.query(`DROP TABLE ${partition}`)
  await client.query(`TRUNCATE ${emptied.map(quote).join(', ')} RESTART IDENTITY`)
  // Events start from scratch after a restore: clients that ask for earlier ones are told that they are unavailable.
  const { rows: partitions } = await client.query<{ name: string }>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = to_regclass('event')`,
  )
  for (const { name } of partitions) await client.query(`DROP TABLE ${name}`)
  const order = await referredFirst(client)
  const rank = (name: string) => order.indexOf(name)
  for (const { name, columns, rows } of [...tables].sort((a, b) => rank(a.name) - rank(b.name))) {
    const load = async (into: string) => {
      const sink = client.query(copyFrom(`COPY ${quote(into)} (${listOf(columns)}) FROM STDIN`))
      await pipeline(contentOf(name), sink)
      return sink.rowCount
    }
    const loaded = isPartitioned(name) ? await loadPartitioned(client, name, columns, load) : await load(name)
    if (loaded !== rows) throw new Error(`table ${name} has ${loaded} rows, not ${rows}`)
    onTable(name, rows)
  }
  for (const [name, value] of Object.entries(sequences))
    await client.query('SELECT setval($1::regclass, $2)', [quote(name), value])
}

/**
 * Loads rows through a staging table, because their days are known only then.
 * @param load writes the rows into a table. @returns the result of `load`.
 */
async function loadPartitioned<T>(
  client: CopyConnection,
  name: Partitioned,
  columns: string[],
  load: (into: string) => Promise<T>,
): Promise<T> {
  await client.query(`CREATE TEMP TABLE staged (LIKE ${name}) ON COMMIT DROP`)
  const loaded = await load('staged')
  const { rows } = await client.query<{ day: string }>(
    `SELECT DISTINCT to_char(created_at, 'YYYYMMDD') AS day FROM staged`,
  )
  for (const { day } of rows) await makePartition(client as Queryable, name, day)
  const list = listOf(columns)
  await client.query(`INSERT INTO ${name} (${list}) OVERRIDING SYSTEM VALUE SELECT ${list} FROM staged`)
  await client.query('DROP TABLE staged')
  return loaded
}

/** Tables with their written columns, in order. */
async function readTables(client: CopyConnection): Promise<{ name: string; columns: string[] }[]> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(
    `SELECT relname::text AS name, array_agg(attname::text ORDER BY attnum) AS columns
     FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
     WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
       AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
     GROUP BY relname ORDER BY relname`,
  )
  return rows
}

/** Names of all tables, each after those that its rows refer to. */
export async function referredFirst(client: CopyConnection): Promise<string[]> {
  const { rows } = await client.query<{ name: string; referred: string[] }>(
    `SELECT relname::text AS name, array_remove(array_agg(DISTINCT confrelid::regclass::text), NULL) AS referred
     FROM pg_class LEFT JOIN pg_constraint ON conrelid = pg_class.oid AND contype = 'f' AND confrelid <> conrelid
     WHERE pg_class.relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
     GROUP BY relname ORDER BY relname`,
  )
  const order: string[] = []
  const referred = new Map(rows.map((row) => [row.name, row.referred]))
  const place = (name: string): void => {
    if (order.includes(name)) return
    for (const other of referred.get(name) ?? []) place(other)
    order.push(name)
  }
  for (const { name } of rows) place(name)
  return order
}

/** Counts the rows of a table's file. @throws Error if a row has another number of columns. */
export async function countRows(content: Readable, columns: number): Promise<number> {
  let rows = 0
  let tabs = 0
  let isOpen = false
  for await (const chunk of content.pipe(new PassThrough())) {
    for (const byte of chunk as Buffer) {
      isOpen = byte !== NEWLINE
      if (byte === TAB) tabs++
      if (isOpen) continue
      rows++
      if (tabs !== columns - 1) throw new Error(`row ${rows} has ${tabs + 1} columns, not ${columns}`)
      tabs = 0
    }
  }
  if (isOpen) throw new Error(`row ${rows + 1} is cut off`)
  return rows
}

/** COPY's text format escapes both within values. */
const NEWLINE = 0x0a
const TAB = 0x09

export const quote = quoteIdentifier
export const listOf = (columns: string[]) => columns.map(quote).join(', ')
