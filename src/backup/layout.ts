/**
 * The files of one Berth's backups:
 *
 *   berth-backup.json         the format, and the Berth that the backups belong to
 *   ipfs/<network>/           blocks and roots, in the layout of an embedded IPFS node; shared by all backups
 *   backups/<time>/           one backup: manifest.json, tables/, roots/, homes/ of agents, and keys.age if keys were
 *                             requested
 *
 * The manifest is written once everything else is safe: a folder without a manifest is not a backup.
 */
import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import { hasCode } from '../lib/files.ts'
import { parseJson } from '../lib/read.ts'
import type { Network } from '../storage/port.ts'
import { BackupError, type BackupStore } from './store.ts'

/** Increases when an older Berth can no longer read a newer one's backups. */
const FORMAT = 1
const HEAD = 'berth-backup.json'
const MANIFEST = 'manifest.json'
const BACKUPS = 'backups'
const BACKUP_NAME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/

const head = z.object({ format: z.number(), instance: z.string() })

const manifestShape = z.object({
  format: z.literal(FORMAT),
  /** Version of the Berth that created the backup. */
  berth: z.string(),
  /** When the database was read, ISO 8601. */
  at: z.string(),
  instance: z.string(),
  /** Names of the migrations that the schema had. */
  schema: z.array(z.string()).min(1),
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()).min(1), rows: z.number() })),
  /** Last values of sequences; unused sequences are omitted. */
  sequences: z.record(z.string(), z.string()),
  /** Number of kept roots on each network. */
  roots: z.object({ public: z.number(), private: z.number() }),
  /** Roots whose content Berth itself had lost. */
  unreadable: z.array(z.object({ network: z.enum(['public', 'private']), cid: z.string(), why: z.string() })),
  /** Agents whose home is in the backup; then those whose home is not, with the reason. */
  homes: z.array(z.string()),
  homeless: z.record(z.string(), z.string()),
  /** Fingerprints of the keys, by the names of their settings: they recognise a key without revealing it. */
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
 * Prepares a place for a backup; a missing or empty folder becomes a folder of backups.
 * @throws BackupError if it contains something else, or backups of another or a newer Berth.
 */
export async function openForBackup(store: BackupStore, instance: string): Promise<void> {
  const known = await readHead(store)
  if (known && known.instance !== instance)
    throw new BackupError(
      `${store.where} has backups of another Berth (${known.instance}); give this one a folder of its own`,
    )
  if (!known) {
    const others = (await store.names('')).filter((name) => name !== 'lost+found' && !name.startsWith('.'))
    if (others.length > 0)
      throw new BackupError(
        `${store.where} is not empty and no folder of backups; give backups a folder of their own`,
      )
  }
  await store.prepare()
  if (known) return
  await store.write(HEAD, Buffer.from(`${JSON.stringify({ format: FORMAT, instance })}\n`))
  await store.settle()
}

/** @throws BackupError if it is not a folder of backups, or a newer Berth wrote it. */
export async function openForReading(store: BackupStore): Promise<void> {
  if (!(await readHead(store)))
    throw new BackupError(`${store.where} is no folder of backups: it has no ${HEAD}`)
}

async function readHead(store: BackupStore): Promise<z.infer<typeof head> | null> {
  const text = await store.read(HEAD)
  if (text === null) return null
  const parsed = head.safeParse(parseJson(text.toString()))
  if (!parsed.success) throw new BackupError(`${store.where}/${HEAD} is damaged`)
  if (parsed.data.format > FORMAT)
    throw new BackupError(
      `${store.where} was written by a newer Berth (format ${parsed.data.format}): use that one`,
    )
  return parsed.data
}

/** Names of the complete backups, oldest first. */
export async function listBackups(store: BackupStore): Promise<string[]> {
  const whole: string[] = []
  for (const name of (await store.names(BACKUPS)).sort())
    if (BACKUP_NAME.test(name) && (await store.size(partOf(name, MANIFEST))) !== null) whole.push(name)
  return whole
}

/** When a backup was created, by its name. */
export const timeOf = (name: string): Date => new Date(name.replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:'))

/** The path of a backup's file. */
export const partOf = (name: string, path: string) => `${BACKUPS}/${name}/${path}`

/** Removes a backup, or what is left of one. A partial removal leaves no valid backup. */
export async function removeBackup(store: BackupStore, name: string): Promise<void> {
  await store.remove([partOf(name, MANIFEST)])
  await store.settle()
  const paths: string[] = []
  for await (const path of store.list(`${BACKUPS}/${name}`)) paths.push(path)
  await store.remove(paths)
}

/** @throws BackupError if the manifest is missing, damaged, or of a newer format. */
export async function readManifest(store: BackupStore, name: string): Promise<Manifest> {
  const path = partOf(name, MANIFEST)
  const text = await store.read(path)
  if (text === null) throw new BackupError(`${store.where}/${path} is missing`)
  const found = parseJson(text.toString())
  const parsed = manifestShape.safeParse(found)
  if (parsed.success) return parsed.data
  const { format } = (found ?? {}) as { format?: unknown }
  if (typeof format === 'number' && format > FORMAT)
    throw new BackupError(
      `${store.where}/${path} was written by a newer Berth (format ${format}): use that one`,
    )
  throw new BackupError(`${store.where}/${path} is damaged`)
}

/** A backup in progress. */
export class BackupWriter {
  readonly files: Manifest['files'] = {}
  readonly store: BackupStore
  readonly #at = new Date()

  /**
   * Begins a backup, and removes the remains of interrupted ones. Only one process at a time may write.
   * @throws BackupError if the backup would not be the newest one: restores use the newest one, and it is always kept.
   */
  static async begin(store: BackupStore): Promise<BackupWriter> {
    const whole = await listBackups(store)
    const newest = whole.at(-1)
    if (newest && timeOf(newest).getTime() > Date.now())
      throw new BackupError(
        `${store.where} has a backup of a time to come (${newest}): put the clock right, or remove that folder`,
      )
    for (const name of await store.names(BACKUPS)) if (!whole.includes(name)) await removeBackup(store, name)
    return new BackupWriter(store)
  }

  private constructor(store: BackupStore) {
    this.store = store
  }

  get at(): string {
    return this.#at.toISOString()
  }

  get name(): string {
    return this.at.replaceAll(':', '-')
  }

  /** Writes a file of the backup, compressed if its name ends in `.gz`. @returns its path in the store. */
  async write(path: string, source: Readable): Promise<string> {
    const full = partOf(this.name, path)
    const hash = createHash('sha256')
    let bytes = 0
    const count = new Transform({
      transform(chunk: Buffer, _, done) {
        hash.update(chunk)
        bytes += chunk.length
        done(null, chunk)
      },
    })
    const sink = (content: AsyncIterable<Uint8Array>) => this.store.write(full, content)
    await (path.endsWith('.gz')
      ? pipeline(source, createGzip({ level: 4 }), count, sink)
      : pipeline(source, count, sink))
    this.files[path] = { bytes, sha256: hash.digest('hex') }
    return full
  }

  /** Writes the manifest, which makes the backup valid. */
  async finish(manifest: Omit<Manifest, 'format' | 'at' | 'files'>): Promise<void> {
    await this.store.settle()
    const whole: Manifest = { format: FORMAT, at: this.at, ...manifest, files: this.files }
    await this.store.write(partOf(this.name, MANIFEST), Buffer.from(`${JSON.stringify(whole, null, 1)}\n`))
    await this.store.settle()
  }
}

/** How a file differs from its manifest entry; null if it does not. */
export async function damageOf(
  store: BackupStore,
  path: string,
  expected: { bytes: number; sha256: string } | undefined,
): Promise<string | null> {
  if (!expected) return 'is not in the manifest'
  const hash = createHash('sha256')
  let bytes = 0
  try {
    for await (const chunk of store.stream(path)) {
      hash.update(chunk)
      bytes += chunk.length
    }
  } catch (error) {
    return hasCode(error, 'ENOENT') ? 'is missing' : `cannot be read: ${(error as Error).message}`
  }
  if (bytes !== expected.bytes) return `has ${bytes} bytes, not ${expected.bytes}`
  return hash.digest('hex') === expected.sha256 ? null : 'has another checksum'
}

/** The content of a compressed file. */
export function readCompressed(store: BackupStore, path: string): Readable {
  const file = store.stream(path)
  const content = createGunzip()
  file.on('error', (error) => content.destroy(error))
  return file.pipe(content)
}

/** The lines of a compressed file. */
export function linesOf(store: BackupStore, path: string): AsyncIterable<string> {
  return createInterface({ input: readCompressed(store, path), crlfDelay: Number.POSITIVE_INFINITY })
}
