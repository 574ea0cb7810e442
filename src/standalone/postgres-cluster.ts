/**
 * The embedded cluster of a data folder: its place, password and port, and how it is created.
 *
 * `<data folder>/postgres.json` (mode 600) is written before anything else and contains all of this. The cluster is
 * `<home>/pg<major>`. Its home is `<data folder>/postgres` or, as root, a folder under /var/lib/berth if the server's
 * user cannot enter the data folder.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, readdir, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PostgresStartError } from '../errors.ts'
import {
  hasCode,
  readIfExists,
  removeLeftovers,
  renameDurably,
  replaceFile,
  temporaryName,
  writeDurably,
} from '../lib/files.ts'
import { canEnter, isRoot, type RunAs, run, SYSTEM_FOLDER, systemUser } from '../lib/process/system-user.ts'
import type { Binaries } from './postgres-binaries.ts'

/** Content of `postgres.json`. */
export interface ClusterRecord {
  password: string
  port: number
  /** Home of the cluster, if it is not inside the data folder. */
  elsewhere: string | null
  /** User that owns the cluster, if it is not the user who starts Berth. */
  user: RunAs
}

const recordPath = (dataDir: string) => join(dataDir, 'postgres.json')

/** The home of the cluster that a record describes. */
export const homeOf = (dataDir: string, record: ClusterRecord) =>
  record.elsewhere ?? join(dataDir, 'postgres')

/** The address of a server as a libpq URL, including the password. */
export const urlOf = (record: ClusterRecord, database: string) =>
  `postgres://berth:${record.password}@127.0.0.1:${record.port}/${database}`

/**
 * Reads the record of a data folder; null if it has none yet.
 * @throws PostgresStartError if another user created the folder.
 */
export async function readRecord(dataDir: string): Promise<ClusterRecord | null> {
  const path = recordPath(dataDir)
  try {
    const text = await readIfExists(path)
    if (text === null) return null
    await checkOwner(path)
    return JSON.parse(text) as ClusterRecord
  } catch (error) {
    if (hasCode(error, 'EACCES', 'EPERM')) await checkOwner(path).catch(() => checkOwner(dataDir))
    if (error instanceof SyntaxError) {
      throw new PostgresStartError(
        `${path} is damaged: restore it from a backup. It holds the database's password.`,
      )
    }
    throw error
  }
}

/** Replaces the record of a data folder. */
export async function writeRecord(dataDir: string, record: ClusterRecord): Promise<void> {
  await replaceFile(recordPath(dataDir), `${JSON.stringify(record, null, 2)}\n`, 0o600)
}

/**
 * Decides where a new cluster goes and who runs it, and records that before anything is created.
 * @throws PostgresStartError if the data folder belongs to another user, or root has no user for the server.
 */
export async function createRecord(dataDir: string, port: number): Promise<ClusterRecord> {
  const user = await serverUser()
  // A new name each time: after a data folder was deleted, its successor must not find the old cluster.
  const name = `data-${randomBytes(4).toString('hex')}`
  const elsewhere = (await canEnter(dataDir, user)) ? null : join(SYSTEM_FOLDER, name)
  const record = { password: randomBytes(24).toString('base64url'), port, elsewhere, user }
  try {
    await writeRecord(dataDir, record)
  } catch (error) {
    if (hasCode(error, 'EACCES', 'EPERM')) await checkOwner(dataDir)
    throw error
  }
  return record
}

async function checkOwner(path: string): Promise<void> {
  const owner = (await stat(path)).uid
  const self = process.getuid?.()
  if (self === undefined || owner === self) return
  const name = (uid: number) => (uid === 0 ? 'root' : `the user with id ${uid}`)
  throw new PostgresStartError(
    `${path} belongs to ${name(owner)}, and Berth was started as ${name(self)}. ` +
      `Start it as ${name(owner)}, or give this user its own data folder with BERTH_DATA_DIR.`,
  )
}

/**
 * Creates the home, or checks that it still belongs to this data folder: a moved data folder keeps its cluster, a
 * copied one must not share it with the original.
 * @throws PostgresStartError for a copied data folder, or if the server can no longer enter the home.
 */
export async function openHome(dataDir: string, record: ClusterRecord): Promise<string> {
  const home = homeOf(dataDir, record)
  await mkdir(home, { recursive: true })
  await chmod(home, 0o711)
  if (record.elsewhere) {
    await chmod(SYSTEM_FOLDER, 0o755)
    await claimHome(dataDir, record.elsewhere)
  }
  if (await canEnter(home, record.user)) return home
  throw new PostgresStartError(
    `The PostgreSQL data lies in ${home}, which the server's user (id ${record.user.uid}) cannot enter any more. ` +
      'Give every folder above it the permission x for others (chmod o+x).',
  )
}

async function claimHome(dataDir: string, home: string): Promise<void> {
  const path = join(home, 'data-folder')
  const self = await realpath(dataDir)
  const owner = (await readIfExists(path))?.trim()
  if (owner === self) return
  const other = owner && existsSync(owner) ? await readRecord(owner) : null
  if (other?.elsewhere === home) {
    throw new PostgresStartError(
      `${self} is a copy of ${owner}, whose database lies in ${home}; the copy has no database of its own. ` +
        'Start Berth on the original, or delete the copy.',
    )
  }
  await replaceFile(path, `${self}\n`, 0o644)
}

/**
 * Rejects a home with a cluster of another major version: otherwise, an empty cluster would be created next to it.
 * @throws PostgresStartError
 */
export async function checkVersion(home: string, major: number): Promise<void> {
  const other = (await readdir(home)).find((name) => /^pg\d+$/.test(name) && name !== `pg${major}`)
  if (!other) return
  throw new PostgresStartError(
    `${join(home, other)} was made by another major version of PostgreSQL than ${major}, which is installed now. ` +
      'Go back to the version of Berth that made it, move the data with pg_dump and pg_restore, then delete it.',
  )
}

/**
 * Creates the cluster with initdb. It gets its name once it is complete and on disk: a start that is killed halfway
 * leaves nothing that counts.
 * @throws PostgresStartError with initdb's output.
 */
export async function createCluster(
  cluster: string,
  { bin }: Binaries,
  password: string,
  as: RunAs,
): Promise<void> {
  await removeLeftovers(cluster, 0)
  const fresh = temporaryName(cluster)
  const passwordFile = `${fresh}.password`
  try {
    await mkdir(fresh, { mode: 0o700 })
    await writeDurably(passwordFile, `${password}\n`, 0o600)
    if (as.uid !== undefined) for (const path of [fresh, passwordFile]) await chown(path, as.uid, as.gid)
    // The locale is PostgreSQL's own C.UTF-8, so that it is the same on every system. Data checksums are on by default.
    const options = [
      '--username=berth',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '--encoding=UTF8',
    ]
    const locale = ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    const { ok, output } = await run(
      join(bin, 'initdb'),
      ['-D', fresh, ...options, ...locale, '--no-instructions'],
      as,
      120_000,
    )
    if (!ok) throw new PostgresStartError(`PostgreSQL's initdb failed in ${cluster}:\n${output}`)
    await renameDurably(fresh, cluster)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    throw error
  } finally {
    await rm(passwordFile, { force: true })
  }
}

/**
 * The user that runs a new cluster: the current user or, as root, a system user, which is created if there is none.
 * PostgreSQL's own packages create `postgres`; the other name is Berth's, so that a later package does not conflict
 * with it.
 * @throws PostgresStartError if root cannot create one.
 */
async function serverUser(): Promise<RunAs> {
  if (!isRoot()) return {}
  const found = await systemUser('postgres', 'berth-postgres')
  if (found) return found
  throw new PostgresStartError(
    'PostgreSQL does not run as root, there is no system user "postgres", and none could be made. ' +
      'Start Berth as a normal user, or set DATABASE_URL to your own server.',
  )
}
