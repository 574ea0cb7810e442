/**
 * Handles a home that has moved: restored from a backup under another path or on another machine, or between a
 * container and a process. OpenClaw's state refers to its files, and in its database even to tasks, by absolute path,
 * and treats data with another path as foreign. The same goes for its leases, which name the host of the process that
 * holds them.
 */
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Log } from './logs.ts'
import type { Paths } from './paths.ts'
import { readPlainFile, replaceFile } from './plain-file.ts'

/** Contains the path of the home at the last start, and the name of the host. */
const MARK = '.agentd-home'
/** JSON files above this size are not indexes of the engine. */
const JSON_BYTES = 16 * 1024 * 1024
/** Two paths of maximum length. */
const MARK_BYTES = 8192

/** Updates the engine's state to the home's current path and host, if they changed; runs before the engine. */
export async function relocateHome({ home, state }: Paths, log: Log, host = hostname()): Promise<void> {
  const mark = join(home, MARK)
  const [former, formerHost] = (await readMark(mark)).split('\n')
  if (former === home && formerHost === host) return
  if (former && former !== home) {
    log.info(`the home was ${former}; the engine's state follows it`)
    await moveState(state, former, home, log)
  }
  if (former && formerHost !== host) await dropLeases(join(state, 'state', 'openclaw.sqlite'), host, log)
  await replaceFile(mark, `${home}\n${host}\n`).catch((error) =>
    log.warn(`a move of the home will not be noticed: ${error.message}`),
  )
}

/** Empty if there is none. Removes anything else that the agent has put there. */
async function readMark(mark: string): Promise<string> {
  try {
    return (await readPlainFile(mark, MARK_BYTES)) ?? ''
  } catch {
    await rm(mark, { recursive: true, force: true }).catch(() => {})
    return ''
  }
}

/**
 * Drops the leases of processes on other hosts. The engine cannot know that these have ended, and a gateway that finds
 * another's lease refuses to start for minutes. agentd knows, because nobody else has the home.
 */
async function dropLeases(path: string, host: string, log: Log): Promise<void> {
  if (!(await stat(path).catch(() => null))) return
  const { DatabaseSync } = await import('node:sqlite')
  try {
    const database = new DatabaseSync(path)
    try {
      database
        .prepare(
          `DELETE FROM state_leases WHERE json_valid(payload_json) AND json_extract(payload_json, '$.owner.host') <> ?`,
        )
        .run(host)
    } finally {
      database.close()
    }
  } catch (error) {
    log.info(`the leases of other hosts are not dropped: ${(error as Error).message}`)
  }
}

/** Rewrites every absolute path below `former` in the state to one below `home`. May be repeated. */
async function moveState(state: string, former: string, home: string, log: Log): Promise<void> {
  // Loaded only for a move; otherwise every agentd would hold it in memory.
  const { DatabaseSync } = await import('node:sqlite')
  const entries = await readdir(state, { recursive: true, withFileTypes: true }).catch(() => [])
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name)
    try {
      if (/\.(sqlite|db)$/.test(entry.name)) moveDatabase(new DatabaseSync(path), former, home)
      else if (entry.name.endsWith('.json')) await moveJson(path, former, home)
    } catch (error) {
      // A file that cannot be read does not block the others.
      log.info(`${path} still names ${former}: ${(error as Error).message}`)
    }
  }
}

async function moveJson(path: string, former: string, home: string): Promise<void> {
  if ((await stat(path)).size > JSON_BYTES) return
  const text = await readFile(path, 'utf8')
  const moved = text
    .replaceAll(`${inJson(former)}/`, `${inJson(home)}/`)
    .replaceAll(`"${inJson(former)}"`, `"${inJson(home)}"`)
  if (moved !== text) await replaceFile(path, moved)
}

const inJson = (path: string) => JSON.stringify(path).slice(1, -1)

/** All columns of all tables, in one transaction. */
function moveDatabase(database: DatabaseSync, former: string, home: string): void {
  try {
    const columns = database
      .prepare(
        `SELECT t.name AS "table", c.name AS "column" FROM pragma_table_list t, pragma_table_xinfo(t.name) c
         WHERE t.type = 'table' AND t.schema = 'main' AND t.name NOT LIKE 'sqlite_%' AND c.type = 'TEXT' AND c.hidden = 0`,
      )
      .all() as { table: string; column: string }[]
    database.exec('PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE')
    for (const { table, column } of columns) {
      const name = quote(column)
      database
        .prepare(
          `UPDATE ${quote(table)} SET ${name} = CASE WHEN ${name} = :former THEN :home
           ELSE replace(${name}, :former || '/', :home || '/') END WHERE ${name} = :former OR instr(${name}, :former || '/')`,
        )
        .run({ former, home })
    }
    database.exec('COMMIT')
  } finally {
    database.close()
  }
}

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`
