/**
 * The folder that backups are kept in, of one Berth:
 *
 *   berth-backup.json         its format, and which Berth's it is
 *   ipfs/<network>/           blocks and roots, as an embedded IPFS node has them; shared by all backups
 *   backups/<time>/           one backup: manifest.json, tables/, roots/, homes/ of agents, and keys.age where keys were
 *                             asked for
 *
 * A backup gets its name once all of it is on the disk: what has another name is no backup.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import { readIfExists, renameDurably, replaceFile, temporaryName, writeDurably } from '../lib/files.ts'
import type { Network } from '../storage/port.ts'

/** An error whose message tells a person what to know or to do. */
export class BackupError extends Error {
  override name = 'BackupError'
}

/** Grows when an older Berth can no longer read what a newer one writes. */
const FORMAT = 1
const HEAD = 'berth-backup.json'
const MANIFEST = 'manifest.json'
const BACKUP_NAME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/

const head = z.object({ format: z.number(), instance: z.string() })

const manifestShape = z.object({
  format: z.literal(FORMAT),
  /** Version of the Berth that made it. */
  berth: z.string(),
  /** When the database was read, ISO 8601. */
  at: z.string(),
  instance: z.string(),
  /** Names of the migrations that the schema had. */
  schema: z.array(z.string()).min(1),
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()).min(1), rows: z.number() })),
  /** Last values of sequences; one that was never used is not in it. */
  sequences: z.record(z.string(), z.string()),
  /** Kept roots of each network. */
  roots: z.object({ public: z.number(), private: z.number() }),
  /** Roots whose content Berth itself did not have any more. */
  unreadable: z.array(z.object({ network: z.enum(['public', 'private']), cid: z.string(), why: z.string() })),
  /** Agents whose home is in it, and those whose home is not, with the reason. */
  homes: z.array(z.string()),
  homeless: z.record(z.string(), z.string()),
  /** Marks of the keys by the names of their settings: they recognise a key and do not tell it. */
  keys: z.record(z.string(), z.string()),
  /** Every other file of the backup by its path. */
  files: z.record(z.string(), z.object({ bytes: z.number(), sha256: z.string() })),
})

export type Manifest = z.infer<typeof manifestShape>

export const NETWORKS: readonly Network[] = ['public', 'private']
export const tableFile = (table: string) => `tables/${table}.copy.gz`
export const homeFile = (agentId: string) => `homes/${agentId}.tar.gz`
export const rootsFile = (network: Network) => `roots/${network}.txt.gz`

/**
 * Opens a folder of backups; one that is missing or empty becomes one.
 * @throws BackupError where it has something else in it, or backups of another Berth or of a newer one.
 */
export async function openForBackup(dir: string, instance: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const known = await readHead(dir)
  if (known && known.instance !== instance)
    throw new BackupError(
      `${dir} has backups of another Berth (${known.instance}); give this one a folder of its own`,
    )
  if (!known) {
    const others = (await readdir(dir)).filter((name) => name !== 'lost+found' && !name.startsWith('.'))
    if (others.length > 0)
      throw new BackupError(
        `${dir} is not empty and no folder of backups; give backups a folder of their own`,
      )
    await replaceFile(join(dir, HEAD), `${JSON.stringify({ format: FORMAT, instance })}\n`, 0o600)
  }
  await mkdir(join(dir, 'backups'), { recursive: true, mode: 0o700 })
}

/** @throws BackupError where it is no folder of backups, or one of a newer Berth. */
export async function openForReading(dir: string): Promise<void> {
  if (!(await readHead(dir))) throw new BackupError(`${dir} is no folder of backups: it has no ${HEAD}`)
}

async function readHead(dir: string): Promise<z.infer<typeof head> | null> {
  const text = await readIfExists(join(dir, HEAD))
  if (text === null) return null
  const parsed = head.safeParse(parseJson(text))
  if (!parsed.success) throw new BackupError(`${join(dir, HEAD)} is damaged`)
  if (parsed.data.format > FORMAT)
    throw new BackupError(`${dir} was written by a newer Berth (format ${parsed.data.format}): use that one`)
  return parsed.data
}

/** Names of the backups, the oldest first. */
export async function listBackups(dir: string): Promise<string[]> {
  const names = await readdir(join(dir, 'backups')).catch(() => [])
  return names.filter((name) => BACKUP_NAME.test(name)).sort()
}

/** When a backup was made, by its name. */
export const timeOf = (name: string): Date => new Date(name.replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:'))

export const backupDir = (dir: string, name: string) => join(dir, 'backups', name)

/** @throws BackupError where it is missing, damaged, or of a newer format. */
export async function readManifest(dir: string, name: string): Promise<Manifest> {
  const path = join(backupDir(dir, name), MANIFEST)
  const text = await readIfExists(path)
  if (text === null) throw new BackupError(`${path} is missing`)
  const found = parseJson(text)
  const parsed = manifestShape.safeParse(found)
  if (parsed.success) return parsed.data
  const { format } = (found ?? {}) as { format?: unknown }
  if (typeof format === 'number' && format > FORMAT)
    throw new BackupError(`${path} was written by a newer Berth (format ${format}): use that one`)
  throw new BackupError(`${path} is damaged`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A backup that is being written. */
export class BackupWriter {
  readonly files: Manifest['files'] = {}
  readonly #dir: string
  readonly #at: Date
  readonly #draft: string

  /** @param dir The folder of backups, whose lock the caller holds. */
  static async begin(dir: string): Promise<BackupWriter> {
    for (const name of await readdir(join(dir, 'backups')))
      if (!BACKUP_NAME.test(name)) await rm(join(dir, 'backups', name), { recursive: true, force: true })
    return new BackupWriter(dir, new Date())
  }

  private constructor(dir: string, at: Date) {
    this.#dir = dir
    this.#at = at
    this.#draft = temporaryName(backupDir(dir, this.name))
  }

  get at(): string {
    return this.#at.toISOString()
  }

  get name(): string {
    return this.at.replaceAll(':', '-')
  }

  /** Writes a file of the backup, compressed where its name ends in `.gz`. @returns where it is. */
  async write(path: string, source: Readable): Promise<string> {
    const full = join(this.#draft, path)
    await mkdir(dirname(full), { recursive: true, mode: 0o700 })
    const hash = createHash('sha256')
    let bytes = 0
    const count = new Transform({
      transform(chunk: Buffer, _, done) {
        hash.update(chunk)
        bytes += chunk.length
        done(null, chunk)
      },
    })
    const file = createWriteStream(full, { mode: 0o600, flush: true })
    const written = path.endsWith('.gz')
      ? pipeline(source, createGzip({ level: 4 }), count, file)
      : pipeline(source, count, file)
    await written.catch(async (error) => {
      await rm(full, { force: true })
      throw error
    })
    this.files[path] = { bytes, sha256: hash.digest('hex') }
    return full
  }

  /** Gives it its name: from here on it is a backup. */
  async finish(manifest: Omit<Manifest, 'format' | 'at' | 'files'>): Promise<void> {
    const whole: Manifest = { format: FORMAT, at: this.at, ...manifest, files: this.files }
    await writeDurably(join(this.#draft, MANIFEST), `${JSON.stringify(whole, null, 1)}\n`, 0o600)
    for (const folder of new Set(['.', ...Object.keys(this.files).map(dirname)]))
      await syncFolder(join(this.#draft, folder))
    await renameDurably(this.#draft, backupDir(this.#dir, this.name))
  }
}

/** Waits until the listing of a folder is on the disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().finally(() => folder.close())
}

/** Why a file of a backup is not as its manifest says; null where it is. */
export async function damageOf(
  path: string,
  expected: { bytes: number; sha256: string } | undefined,
): Promise<string | null> {
  if (!expected) return 'is not in the manifest'
  const hash = createHash('sha256')
  let bytes = 0
  try {
    for await (const chunk of createReadStream(path)) {
      hash.update(chunk)
      bytes += chunk.length
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? 'is missing'
      : `cannot be read: ${(error as Error).message}`
  }
  if (bytes !== expected.bytes) return `has ${bytes} bytes, not ${expected.bytes}`
  return hash.digest('hex') === expected.sha256 ? null : 'has another checksum'
}

/** The content of a compressed file. */
export function readCompressed(path: string): Readable {
  const file = createReadStream(path)
  const content = createGunzip()
  file.on('error', (error) => content.destroy(error))
  return file.pipe(content)
}

/** The lines of a compressed file. */
export function linesOf(path: string): AsyncIterable<string> {
  return createInterface({ input: readCompressed(path), crlfDelay: Number.POSITIVE_INFINITY })
}

export const readPart = (dir: string, name: string, path: string): Promise<Buffer> =>
  readFile(join(backupDir(dir, name), path))

export const asStream = (bytes: Uint8Array): Readable => Readable.from([Buffer.from(bytes)])
