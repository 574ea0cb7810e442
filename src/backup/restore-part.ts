/**
 * `berth restore --workspace` and `--agent`: restore a part of a backup into a Berth that has other data. Existing data
 * is never overwritten: the workspace must not exist here; the agent must not exist here, or must be deleted.
 */
import { type CopyConnection, withCopyConnection } from '../db/copy-connection.ts'
import { migrate } from '../db/migrate.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { readOwner } from '../sandboxes/owner.ts'
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
import { OF_NO_AGENT, OF_NOBODY, type PartRows, readAgents, readRoots, writePart } from './part-rows.ts'
import type { RestoreOptions } from './restore.ts'
import {
  bringContent,
  bringHomes,
  migrationsOf,
  refuseDamaged,
  refuseNewer,
  refuseRunning,
  withContainers,
} from './restore-steps.ts'
import { BackupError } from './store.ts'
import { loadTables, takeTurn } from './tables.ts'

/** A workspace by its name or id, or an agent by the id in its paths. */
export type Part = { workspace: string } | { agent: string }

export interface PartReport {
  /** The name of the backup. */
  name: string
  /** Such as `the workspace mine`. */
  what: string
  rows: number
  roots: number
  homes: string[]
  /** Differences from the backup, one line each. */
  notes: string[]
}

/** The schema that holds the rows of a backup while a part of them is restored, next to Berth's own. */
const ASIDE = 'berth_restore'

/**
 * Restores a part of a backup: first the content and the homes, which nobody sees, then all rows in one transaction,
 * after which the restore is complete. An earlier interruption means starting over.
 * @throws BackupError if the backup is damaged or newer, or lacks the part; if Berth is running, has the part, or has
 *   other keys.
 */
export async function restorePart(options: RestoreOptions & { part: Part }): Promise<PartReport> {
  const { store, databaseUrl, pool, part } = options
  await openForReading(store)
  return withCopyConnection(databaseUrl, async (client) => {
    await refuseRunning(client, pool)
    await takeTurn(client)
    const name = options.name ?? (await listBackups(store)).at(-1)
    if (!name) throw new BackupError(`${store.where} has no backup that is whole`)
    const manifest = await readManifest(store, name)
    await refuseNewer(manifest)
    await refuseDamaged(store, name, manifest)
    await layAside(client, options, name, manifest)
    try {
      const rows = await findPart(client, options, name)
      await refuseHere(client, rows)
      if (!options.withoutKeys) await bringKeys(options, name, neededKeys(manifest, part))
      const agents = await readAgents(client, rows)
      const lost = new Set(manifest.unreadable.map(({ network, cid }) => `${network} ${cid}`))
      const notes: string[] = []
      let roots = 0
      for (const network of NETWORKS) {
        const cids = await readRoots(client, rows, network)
        const found = cids.filter((cid) => !lost.has(`${network} ${cid}`))
        for (const cid of cids)
          if (lost.has(`${network} ${cid}`))
            notes.push(`${network} ${cid} is not there: Berth had lost it before the backup`)
        await bringContent(options, network, each(found), found.length)
        roots += found.length
      }
      const homes = options.withoutHomes ? [] : agents.filter((agentId) => manifest.homes.includes(agentId))
      for (const agentId of agents)
        if (!homes.includes(agentId))
          notes.push(`${agentId} has no home of the backup; it comes up with its newest snapshot`)
      await withContainers(options, await readOwner(pool), (runtime) =>
        bringHomes(options, name, homes, runtime),
      )
      crashPoint('restore-part-after-homes')
      const written = await inOneTransaction(client, async () => {
        const done = await writePart(client, rows, (table, count) =>
          options.onProgress?.({ part: 'table', name: table, rows: count }),
        )
        // If a Berth was started during the restore, it may have released the content and the homes.
        await refuseRunning(client, pool)
        crashPoint('restore-part-before-commit')
        return done
      })
      return { name, what: rows.what, homes, roots, rows: written.rows, notes: [...notes, ...written.notes] }
    } finally {
      await client.query(`DROP SCHEMA IF EXISTS ${ASIDE} CASCADE`).catch(() => {})
    }
  })
}

/** Loads the backup's tables into a separate schema, migrated to this version. */
async function layAside(
  client: CopyConnection,
  { store, pool, part, onProgress }: RestoreOptions & { part: Part },
  name: string,
  manifest: Manifest,
): Promise<void> {
  await client.query(`DROP SCHEMA IF EXISTS ${ASIDE} CASCADE`)
  await client.query(`CREATE SCHEMA ${ASIDE}`)
  await migrate(pool, { schema: ASIDE, migrations: await migrationsOf(manifest), isRestoring: true })
  // Tables of an older version may have other names, so all are loaded except those known to be unneeded.
  const unneeded = 'agent' in part ? [...OF_NOBODY, ...OF_NO_AGENT] : OF_NOBODY
  const tables = manifest.tables.filter((table) => !unneeded.includes(table.name))
  await inOneTransaction(client, async () => {
    await client.query(`SET LOCAL search_path = ${ASIDE}`)
    await loadTables(
      client,
      { tables, sequences: {} },
      (table) => readCompressed(store, partOf(name, tableFile(table))),
      (table, rows) => onProgress?.({ part: 'table', name: table, rows }),
    )
  })
  await migrate(pool, { schema: ASIDE, isRestoring: true })
}

/** @throws BackupError if the backup lacks the part. */
async function findPart(
  client: CopyConnection,
  { part, store }: RestoreOptions & { part: Part },
  name: string,
): Promise<PartRows> {
  if ('workspace' in part) {
    const { rows } = await client.query<{ id: string; name: string }>(
      `SELECT id, name FROM ${ASIDE}.workspace WHERE name = $1 OR id::text = $1 ORDER BY id::text = $1 DESC`,
      [part.workspace],
    )
    const [found] = rows
    if (!found) throw new BackupError(`the backup ${name} has no workspace ${part.workspace}`)
    return { aside: ASIDE, scope: 'workspace', id: found.id, what: `the workspace ${found.name}` }
  }
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM ${ASIDE}.agent WHERE agent_id = $1 AND deleted_at IS NULL`,
    [part.agent],
  )
  const [found] = rows
  if (found) return { aside: ASIDE, scope: 'agent', id: found.id, what: `the agent ${part.agent}` }
  for (const other of (await listBackups(store)).reverse())
    if ((await readManifest(store, other)).homes.includes(part.agent))
      throw new BackupError(
        `the backup ${name} has no agent ${part.agent}, or it was deleted by then; --backup ${other} is the newest one that has it`,
      )
  throw new BackupError(`the backup ${name} has no agent ${part.agent}, or it was deleted by then`)
}

/** @throws BackupError if a row of the part exists here that must not be replaced. */
async function refuseHere(client: CopyConnection, { aside, scope, id, what }: PartRows): Promise<void> {
  if (scope === 'workspace') {
    const { rows } = await client.query<{ name: string }>(
      `SELECT here.name FROM workspace here JOIN ${aside}.workspace w ON w.id = $1 AND (here.id = w.id OR here.name = w.name)`,
      [id],
    )
    if (rows.length > 0) throw new BackupError(`${what} is here: what is here is not overwritten`)
  } else {
    const { rows } = await client.query<{ id: string; there: boolean }>(
      `SELECT a.workspace_id AS id, EXISTS (SELECT FROM workspace w WHERE w.id = a.workspace_id) AS there
       FROM ${aside}.agent a WHERE a.id = $1`,
      [id],
    )
    if (!rows[0]?.there)
      throw new BackupError(
        `the workspace ${rows[0]?.id} of ${what} is not here: restore it with --workspace`,
      )
  }
  const { rows: agents } = await client.query<{ agentId: string; deleted: boolean }>(
    `SELECT here.agent_id AS "agentId", here.deleted_at IS NOT NULL AS deleted
     FROM agent here JOIN ${aside}.agent a ON a.agent_id = here.agent_id
     WHERE (a.${scope === 'agent' ? 'id' : 'workspace_id'} = $1) AND here.purged_at IS NULL`,
    [id],
  )
  for (const { agentId, deleted } of agents)
    throw new BackupError(
      deleted
        ? `the deletion of the agent ${agentId} has not ended: start Berth, wait until its container and its home are gone, and stop it again`
        : `the agent ${agentId} is here: what is here is not overwritten; delete it first`,
    )
}

/** An agent's rows need only the key of its secrets. */
function neededKeys(manifest: Manifest, part: Part): Manifest {
  if ('workspace' in part) return manifest
  const { SECRETS_KEY } = manifest.keys
  return { ...manifest, keys: SECRETS_KEY ? { SECRETS_KEY } : {} }
}

async function inOneTransaction<T>(client: CopyConnection, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN')
  try {
    const done = await work()
    await client.query('COMMIT')
    return done
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function* each(cids: string[]): AsyncGenerator<string> {
  yield* cids
}
