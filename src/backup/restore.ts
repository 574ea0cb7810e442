/** `berth restore`: a backup into a Berth that has nothing yet, on whatever parts that one runs. */
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import { type Migration, migrationNames, readMigrations } from '../db/migrations.ts'
import type { Pool } from '../db/pool.ts'
import { RESTORE_MARK } from '../db/schema-state.ts'
import { crashPoint } from '../lib/crash-point.ts'
import type { Logger } from '../log.ts'
import { openRuntime } from '../sandboxes/open.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import type { Storages } from '../storage/open.ts'
import { type Network, StorageError } from '../storage/port.ts'
import { eachOf, homesOf } from './backup.ts'
import { BlockArchive } from './blocks.ts'
import {
  BackupError,
  backupDir,
  homeFile,
  listBackups,
  type Manifest,
  NETWORKS,
  openForReading,
  readCompressed,
  readManifest,
  readPart,
  tableFile,
} from './folder.ts'
import { decryptKeys, KEYS, KEYS_FILE, type Keys, markOf, marksOf, readKeys, writeKeys } from './keys.ts'
import { loadTables, withConnection } from './tables.ts'
import { damagedFiles, rootsOf } from './verify.ts'

const ROOTS_AT_ONCE = 8
const CHECK_MS = 30_000

export interface RestoreOptions {
  dir: string
  /** The newest one unless told. */
  name?: string | undefined
  config: Config
  pool: Pool
  databaseUrl: string
  storages: Storages
  /** Opens the keys of a backup that was made with one. */
  passphrase?: string | undefined
  /** Leaves the homes of agents as they are here. */
  withoutHomes?: boolean
  log: Logger
  /** Goes on where the keys of the backup are not here: what they open is lost. */
  withoutKeys?: boolean
  onProgress?: (progress: RestoreProgress) => void
  signal: AbortSignal
}

export type RestoreProgress =
  | { part: 'content'; network: Network; roots: number; ofRoots: number }
  | { part: 'table'; name: string; rows: number }
  | { part: 'home'; agentId: string }
  | { part: 'schema'; applied: string[] }

export interface RestoreReport {
  name: string
  at: string
  rows: number
  roots: Record<Network, number>
  unreadable: Manifest['unreadable']
  homes: Manifest['homes']
  /** Settings whose keys were taken out of the backup and are under the data folder now. */
  keys: string[]
}

/**
 * Restores a backup. First the content, which changes nothing that anybody sees, then all rows in one transaction, then
 * migrations that are newer than the backup. Until the end a mark in the database keeps every role from starting on it;
 * run again, it goes on.
 * @throws BackupError where the backup is damaged or newer, or this Berth is not empty, runs, or has other keys.
 */
export async function restore(options: RestoreOptions): Promise<RestoreReport> {
  const { dir, databaseUrl, pool } = options
  await openForReading(dir)
  return withConnection(databaseUrl, async (client) => {
    await refuseRunning(client, pool)
    const begun = await readMark(client)
    const name = options.name ?? begun?.name ?? (await listBackups(dir)).at(-1)
    if (!name) throw new BackupError(`${dir} has no backup that is whole`)
    if (begun?.step === 'rows' && name !== begun.name)
      throw new BackupError(`the rows of ${begun.name} are here already: restore that one again`)
    const manifest = await readManifest(dir, name)
    if (begun?.step !== 'rows') await checkSchema(client, manifest)
    if (!begun) await refuseUsed(client)
    const problems = await damagedFiles(dir, name, manifest)
    if (problems.length > 0)
      throw new BackupError(
        `the backup ${name} is damaged:\n${problems.map((line) => `  ${line}`).join('\n')}`,
      )
    const keys = await bringKeys(options, name, manifest)
    const homes = options.withoutHomes ? [] : manifest.homes
    if (begun?.step !== 'rows') {
      await withContainers(options, manifest, async (runtime) => {
        if (!begun) await refuseHomes(runtime, homes)
        await writeMark(client, name)
        await migrate(pool, { migrations: await migrationsOf(manifest), isRestoring: true })
        await restoreContent(options, name, manifest)
        for (const agentId of homes) {
          const content = readCompressed(join(backupDir(dir, name), homeFile(agentId)))
          await runtime().then((runtime) => runtime.writeHome(agentId, content, { signal: options.signal }))
          options.onProgress?.({ part: 'home', agentId })
        }
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

/** @throws BackupError where the backup or the database has a schema that the other one cannot be brought to. */
async function checkSchema(client: pg.Client, { schema, berth }: Manifest): Promise<void> {
  const known = await migrationNames()
  const unknown = schema.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new BackupError(
      `the backup was made by a newer Berth (${berth}, schema ${unknown.join(', ')}): restore it with that one`,
    )
  const { rows } = await client
    .query<{ name: string }>('SELECT migration_name AS name FROM _prisma_migrations')
    .catch(noTable)
  const ahead = rows.map(({ name }) => name).filter((name) => !schema.includes(name))
  if (ahead.length > 0)
    throw new BackupError(
      `DATABASE_URL: its schema is newer than the backup (${ahead.join(', ')}): restore into a database without tables`,
    )
}

/** Those that the backup's schema had. */
async function migrationsOf({ schema }: Manifest): Promise<Migration[]> {
  return (await readMigrations()).filter(({ name }) => schema.includes(name))
}

/** 42P01: there is no such table. */
function noTable(error: { code?: string }): { rows: never[] } {
  if (error.code === '42P01') return { rows: [] }
  throw error
}

/** Processes of Berth have connections of their own by this name, and this one has those of its pool. */
async function refuseRunning(client: pg.Client, pool: Pool): Promise<void> {
  const { rows } = await client.query<{ others: number }>(
    `SELECT count(*)::int - $1 AS others FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'berth'`,
    [pool.totalCount],
  )
  if (rows[0] && rows[0].others > 0)
    throw new BackupError('Berth runs on this database: stop it, then restore')
}

/** @throws BackupError that says what is there already. */
async function refuseUsed(client: pg.Client): Promise<void> {
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

/** Lends out where agents run, opened when it is asked for. What it makes is the backed up Berth's, which this one will be. */
async function withContainers(
  { config, log }: RestoreOptions,
  { instance }: Manifest,
  work: (runtime: () => Promise<SandboxRuntime>) => Promise<void>,
): Promise<void> {
  let opened: Promise<SandboxRuntime> | undefined
  const owner = { instance, former: [], knows: async () => new Set<string>() }
  try {
    await work(() => {
      opened ??= openRuntime(config, log, owner)
      return opened
    })
  } finally {
    await (await opened?.catch(() => undefined))?.close()
  }
}

/** @throws BackupError where an agent of the backup has a home here, which may be newer. */
async function refuseHomes(runtime: () => Promise<SandboxRuntime>, homes: string[]): Promise<void> {
  if (homes.length === 0) return
  const here = await homesOf(await runtime())
  const both = homes.filter((agentId) => here.includes(agentId))
  if (both.length > 0)
    throw new BackupError(
      `${both.join(', ')}: these agents have their homes here; remove those, or keep them with --without-homes`,
    )
}

async function readMark(client: pg.Client): Promise<{ name: string; step: string } | undefined> {
  const { rows } = await client
    .query<{ name: string; step: string }>(`SELECT name, step FROM ${RESTORE_MARK}`)
    .catch(noTable)
  return rows[0]
}

async function writeMark(client: pg.Client, name: string): Promise<void> {
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${RESTORE_MARK} AS SELECT NULL::text AS name, 'begun'::text AS step`,
  )
  await client.query(`UPDATE ${RESTORE_MARK} SET name = $1`, [name])
}

/** Imports and pins what is not pinned here yet. */
async function restoreContent(options: RestoreOptions, name: string, manifest: Manifest): Promise<void> {
  const { dir, storages, signal, onProgress } = options
  for (const network of NETWORKS) {
    const archive = new BlockArchive(dir, network)
    const storage = storages[network]
    let roots = 0
    await eachOf(rootsOf(dir, network, new Map([[name, manifest]])), ROOTS_AT_ONCE, async (text) => {
      const root = CID.parse(text)
      const soon = () => AbortSignal.any([signal, AbortSignal.timeout(CHECK_MS)])
      if (!(await storage.isPinned(root, { signal: soon() })))
        await storage.importCar(archive.exportCar(root, signal), { signal }).catch((error) => {
          const isDamage =
            error instanceof StorageError && error.code !== 'unavailable' && error.code !== 'aborted'
          if (!isDamage) throw error
          const advice = '`berth backup verify` tells all that is wrong; `--backup` takes an older one'
          throw new BackupError(`${network} ${root} cannot be restored: ${error.message} (${advice})`, {
            cause: error,
          })
        })
      roots++
      onProgress?.({ part: 'content', network, roots, ofRoots: manifest.roots[network] })
    })
  }
}

/** All rows and the next step of the mark, or none of it. */
async function restoreRows(
  client: pg.Client,
  { dir, onProgress }: RestoreOptions,
  name: string,
  manifest: Manifest,
): Promise<void> {
  const pathOf = (table: string) => join(backupDir(dir, name), tableFile(table))
  await client.query('BEGIN')
  try {
    await loadTables(client, manifest, pathOf, (name, rows) => onProgress?.({ part: 'table', name, rows }))
    await client.query(`UPDATE ${RESTORE_MARK} SET step = 'rows'`)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/**
 * Makes sure that the keys are here with which the rows were written.
 * @returns settings whose keys it took out of the backup.
 * @throws BackupError that names each key that is another one, or missing.
 */
async function bringKeys(
  { dir, config, passphrase, withoutKeys = false }: RestoreOptions,
  name: string,
  manifest: Manifest,
): Promise<string[]> {
  if (withoutKeys) return []
  const here = await readKeys(config)
  const marks = marksOf(here)
  const needed = KEYS.filter(({ setting }) => manifest.keys[setting])
  const other = needed.filter(({ setting }) => {
    const previous = config[`${setting}_PREVIOUS`]
    const known = [marks[setting], previous && markOf(previous)]
    return marks[setting] && !known.includes(manifest.keys[setting])
  })
  if (other.length > 0)
    throw new BackupError(
      other
        .map(({ setting, file, opens }) => {
          const place = config[setting] ? 'is set to' : `is, in ${join(config.BERTH_DATA_DIR, file)},`
          return `${setting}: ${place} another key than that of the backup, which opens its ${opens}`
        })
        .join('\n'),
    )
  const missing = needed.filter(({ setting }) => !marks[setting])
  if (missing.length === 0) return []
  const encrypted = KEYS_FILE in manifest.files
  if (encrypted && passphrase) {
    const keys = await decryptKeys(await readPart(dir, name, KEYS_FILE), passphrase)
    const wanted: Keys = Object.fromEntries(missing.map(({ setting }) => [setting, keys[setting]]))
    await writeKeys(config.BERTH_DATA_DIR, wanted)
    return missing.map(({ setting }) => setting)
  }
  const advice = encrypted ? 'set BERTH_BACKUP_PASSPHRASE to take it out of the backup, or ' : ''
  throw new BackupError(
    missing
      .map(
        ({ setting, file, opens }) =>
          `${setting}: is not here; ${advice}set it to the key of the backed up Berth or put that into ` +
          `${join(config.BERTH_DATA_DIR, file)}. Without it (--without-keys) its ${opens} are lost`,
      )
      .join('\n'),
  )
}
