import { randomBytes } from 'node:crypto'
import { open, opendir, readdir, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import { nullIfMissing, onDisk } from './blocks.ts'
import type { Mark, NodePins } from './place.ts'

const PINNING = '.pinning-'
const IMPORTING = 'importing-'
/** Renewals of a mark within the time after which it counts as left by a dead process. */
const RENEWALS = 6

const isMark = (name: string): boolean => name.includes(PINNING) || name.startsWith(IMPORTING)

/** The CID in a file's name; null for a file that is not ours. */
function parse(name: string): CID | null {
  try {
    return CID.parse(name)
  } catch {
    return null
  }
}

/** Everything that garbage collection must keep. */
export interface Roots {
  /** Roots of pins, finished or in progress. */
  cids: CID[]
  /** Start of the oldest import in progress: blocks written since then may have no root yet. */
  importingSinceMs: number | null
}

/**
 * The kept roots, as empty files in `pins/`: `<cid>` is a pin, `<cid>.pinning-<random>` a pin in progress,
 * `importing-<start in ms>-<random>` an import with an unknown root. Creating and removing a file is atomic, and that
 * is all that several processes on one folder need.
 */
export class PinFolder implements NodePins {
  readonly dir: string
  readonly #markExpiryMs: number

  /** @param markExpiryMs A mark that was not renewed for this long no longer keeps anything. */
  constructor(dir: string, { markExpiryMs }: { markExpiryMs: number }) {
    this.dir = join(dir, 'pins')
    this.#markExpiryMs = markExpiryMs
  }

  async has(cid: CID): Promise<boolean> {
    return (await nullIfMissing(() => stat(join(this.dir, `${cid}`)))) !== null
  }

  /** Keeps a root permanently: it is on disk when this returns. Idempotent. */
  async add(cid: CID): Promise<void> {
    await this.#create(`${cid}`)
    await onDisk(async () => {
      const folder = await open(this.dir)
      await folder.sync().finally(() => folder.close())
    })
  }

  /** True if there was such a pin. */
  async remove(cid: CID): Promise<boolean> {
    const removed = await nullIfMissing(() => rm(join(this.dir, `${cid}`)).then(() => true))
    return removed ?? false
  }

  /** Every finished pin, in no order. */
  async *list(): AsyncGenerator<CID> {
    const folder = await onDisk(() => opendir(this.dir))
    for await (const { name } of folder) {
      const cid = isMark(name) ? null : parse(name)
      if (cid) yield cid
    }
  }

  /** Marks a DAG as being retrieved: its received blocks are kept. */
  markPinning(cid: CID): Promise<Mark> {
    return this.#mark(`${cid}${PINNING}${randomBytes(8).toString('hex')}`)
  }

  /** Marks an import of files, a CAR or a build with an unknown root: GC removes nothing used since. */
  markImporting(): Promise<Mark> {
    return this.#mark(`${IMPORTING}${Date.now()}-${randomBytes(8).toString('hex')}`)
  }

  /**
   * All roots for a GC. The folder is read twice: a pin that changes from "in progress" to "finished" during one
   * reading may appear in neither state there, but then the other reading has it, because the finished file is created
   * before the other one is removed.
   */
  async roots(nowMs: number): Promise<Roots> {
    const read = () => onDisk(() => readdir(this.dir))
    const cids: CID[] = []
    let importingSinceMs: number | null = null
    for (const name of new Set([...(await read()), ...(await read())])) {
      if (isMark(name) && (await this.#expired(name, nowMs))) {
        await onDisk(() => rm(join(this.dir, name), { force: true }))
      } else if (name.startsWith(IMPORTING)) {
        importingSinceMs = Math.min(importingSinceMs ?? Infinity, Number(name.split('-')[1]))
      } else {
        const cid = parse(name.split(PINNING)[0] ?? '')
        if (cid) cids.push(cid)
      }
    }
    return { cids, importingSinceMs }
  }

  async #expired(name: string, nowMs: number): Promise<boolean> {
    const file = await nullIfMissing(() => stat(join(this.dir, name)))
    return file !== null && nowMs - file.mtimeMs > this.#markExpiryMs
  }

  async #mark(name: string): Promise<Mark> {
    const path = join(this.dir, name)
    await this.#create(name)
    const renewal = setInterval(() => {
      const now = new Date()
      utimes(path, now, now).catch(() => {})
    }, this.#markExpiryMs / RENEWALS).unref()
    return {
      release: async () => {
        clearInterval(renewal)
        await onDisk(() => rm(path, { force: true }))
      },
    }
  }

  async #create(name: string): Promise<void> {
    await onDisk(async () => {
      const file = await open(join(this.dir, name), 'a')
      await file.close()
    })
  }
}
