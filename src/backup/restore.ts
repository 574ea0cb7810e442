/** `berth restore`: restores a backup into an empty Berth, whatever components it uses. */
import type { Config } from '../config.ts'
import { type CopyConnection, withCopyConnection } from '../db/copy-connection.ts'
import { migrate } from '../db/migrate.ts'
import type { Pool } from '../db/pool.ts'
import { RESTORE_MARK } from '../db/schema-state.ts'
import { crashPoint } from '../lib/crash-point.ts'
import type { Logger } from '../log.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import type { Storages } from '../storage/open.ts'
import type { Network } from '../storage/port.ts'
import { homesOf } from './backup.ts'
import { bringKeys } from './keys.ts'
import {
  listBackups,
  type Manifest,
  NETWORKS,
  openForReading,
  partOf,
  readCompressed,
  readManifest,
  tableFile,
} from './layout.ts'
import {
  bringContent,
  bringHomes,
  migrationsOf,
  type RestoreProgress,
  refuseDamaged,
  refuseNewer,
  refuseRunning,
  withContainers,
} from './restore-steps.ts'
import { BackupError, type BackupStore } from './store.ts'
import { loadTables } from './tables.ts'
import { rootsOf } from './verify.ts'

export interface RestoreOptions {
  store: BackupStore
  /** Default: the newest backup. */
  name?: string | undefined
  config: Config
  pool: Pool
  databaseUrl: string
  storages: Storages
  /** Decrypts the keys of a backup that was created with a passphrase. */
  passphrase?: string | undefined
  /** Leaves the homes of agents here unchanged. */
  withoutHomes?: boolean
  log: Logger
  /** Continues if the backup's keys are not here: everything that they encrypt is lost. */
  withoutKeys?: boolean
  onProgress?: (progress: RestoreProgress) => void
  signal: AbortSignal
}

export interface RestoreReport {
  name: string
  at: string
  rows: number
  roots: Record<Network, number>
  unreadable: Manifest['unreadable']
  homes: Manifest['homes']
  /** Settings whose keys were taken from the backup and are now under the data folder. */
  keys: string[]
}

/**
 * Restores a backup: first the content, which changes nothing visible, then all rows in one transaction, then
 * migrations newer than the backup. Until the end, a mark in the database keeps every role from starting; another run
 * continues the restore.
 * @throws BackupError if the backup is damaged or newer, or if this Berth is not empty, is running, or has other keys.
 */
export async function restore(options: RestoreOptions): Promise<RestoreReport> {
  const { store, databaseUrl, pool } = options
  await openForReading(store)
  return withCopyConnection(databaseUrl, async (client) => {
    await refuseRunning(client, pool)
    const begun = await readMark(client)
    const name = options.name ?? begun?.name ?? (await listBackups(store)).at(-1)
    if (!name) throw new BackupError(`${store.where} has no backup that is whole`)
    if (begun?.step === 'rows' && name !== begun.name)
      throw new BackupError(`the rows of ${begun.name} are here already: restore that one again`)
    const manifest = await readManifest(store, name)
    if (begun?.step !== 'rows') await checkSchema(client, manifest)
    if (!begun) await refuseUsed(client)
    await refuseDamaged(store, name, manifest)
    const keys = options.withoutKeys ? [] : await bringKeys(options, name, manifest)
    const homes = options.withoutHomes ? [] : manifest.homes
    if (begun?.step !== 'rows') {
      // The runtime labels its objects with the identity of the backed-up Berth, which this Berth takes over.
      const owner = { instance: manifest.instance, former: [], knows: async () => new Set<string>() }
      await withContainers(options, owner, async (runtime) => {
        if (!begun) await refuseHomes(runtime, homes)
        await writeMark(client, name)
        await migrate(pool, { migrations: await migrationsOf(manifest), isRestoring: true })
        await restoreContent(options, name, manifest)
        await bringHomes(options, name, homes, runtime)
      })
      crashPoint('restore-after-content')
      await restoreRows(client, options, name, manifest)
      crashPoint('restore-after-rows')
    }
    const applied = await migrate(pool, { isRestoring: true })
    options.onProgress?.({ part: 'schema', applied })
    await client.query(`DROP TABLE ${RESTORE_MARK}`)
    return {
      name,
      at: manifest.at,
      rows: manifest.tables.reduce((sum, table) => sum + table.rows, 0),
      roots: manifest.roots,
      unreadable: manifest.unreadable,
      homes,
      keys,
    }
  })
}

/** @throws BackupError if the schema of the backup or of the database cannot be brought to the other's. */
async function checkSchema(client: CopyConnection, manifest: Manifest): Promise<void> {
  const { schema } = manifest
  await refuseNewer(manifest)
  const { rows } = await client
    .query<{ name: string }>('SELECT migration_name AS name FROM _prisma_migrations')
    .catch(noTable)
  const ahead = rows.map(({ name }) => name).filter((name) => !schema.includes(name))
  if (ahead.length > 0)
    throw new BackupError(
      `DATABASE_URL: its schema is newer than the backup (${ahead.join(', ')}): restore into a database without tables`,
    )
}

/** 42P01: the table does not exist. */
function noTable(error: { code?: string }): { rows: never[] } {
  if (error.code === '42P01') return { rows: [] }
  throw error
}

/** @throws BackupError that lists what already exists. */
async function refuseUsed(client: CopyConnection): Promise<void> {
  const found: string[] = []
  for (const table of ['workspace', 'app_user', 'file', 'agent']) {
    const { rows } = await client.query<{ there: boolean }>(`SELECT to_regclass($1) IS NOT NULL AS there`, [
      `public.${table}`,
    ])
    if (!rows[0]?.there) continue
    const counted = await client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`)
    const n = counted.rows[0]?.n ?? 0
    if (n > 0) found.push(`${table} has ${n} row${n === 1 ? '' : 's'}`)
  }
  if (found.length > 0)
    throw new BackupError(
      `this Berth is not empty (${found.join(', ')}): restore into another BERTH_DATA_DIR, or another DATABASE_URL`,
    )
}

/** @throws BackupError if an agent of the backup has a home here, which may be newer. */
async function refuseHomes(runtime: () => Promise<SandboxRuntime>, homes: string[]): Promise<void> {
  if (homes.length === 0) return
  const here = await homesOf(await runtime())
  const both = homes.filter((agentId) => here.includes(agentId))
  if (both.length > 0)
    throw new BackupError(
      `${both.join(', ')}: these agents have their homes here; remove those, or keep them with --without-homes`,
    )
}

async function readMark(client: CopyConnection): Promise<{ name: string; step: string } | undefined> {
  const { rows } = await client
    .query<{ name: string; step: string }>(`SELECT name, step FROM ${RESTORE_MARK}`)
    .catch(noTable)
  return rows[0]
}

async function writeMark(client: CopyConnection, name: string): Promise<void> {
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${RESTORE_MARK} AS SELECT NULL::text AS name, 'begun'::text AS step`,
  )
  await client.query(`UPDATE ${RESTORE_MARK} SET name = $1`, [name])
}

/** Restores all content of a backup. */
async function restoreContent(options: RestoreOptions, name: string, manifest: Manifest): Promise<void> {
  for (const network of NETWORKS) {
    const roots = rootsOf(options.store, network, new Map([[name, manifest]]))
    await bringContent(options, network, roots, manifest.roots[network])
  }
}

/** Restores all rows and the next step of the mark, in one transaction. */
async function restoreRows(
  client: CopyConnection,
  { store, onProgress }: RestoreOptions,
  name: string,
  manifest: Manifest,
): Promise<void> {
  const contentOf = (table: string) => readCompressed(store, partOf(name, tableFile(table)))
  await client.query('BEGIN')
  try {
    await loadTables(client, manifest, contentOf, (name, rows) => onProgress?.({ part: 'table', name, rows }))
    await client.query(`UPDATE ${RESTORE_MARK} SET step = 'rows'`)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}
