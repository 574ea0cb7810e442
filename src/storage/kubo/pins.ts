import { CID } from 'multiformats/cid'
import { type PinOptions, StorageError } from '../port.ts'
import { type Kubo, OFFLINE } from './client.ts'
import { isNotPinned, KuboError } from './kubo-errors.ts'
import { retrieveAndPin } from './retrieve.ts'

const SHORT_MS = 10_000
const UNPIN_MS = 30_000
const LIST_IDLE_MS = 60_000
/** Kubo walks a DAG again when its pin gets another name; all of its blocks exist. */
const RENAME_STALL_MS = 30_000
/** Kubo sends nothing while it goes through new blocks. */
const EXTEND_PIN_MS = 120_000
/** Kubo rejects longer names, in bytes. */
const NAME_LIMIT = 255

/**
 * Berth's pins in a Kubo that others may use too. Kubo keeps one recursive pin per CID, with one name, and adding it
 * again replaces the name. A pin that someone else created before Berth gets both names, `berth+<theirs>`, so that
 * releasing it can restore it: Berth never removes its users' own pins.
 */
export class KuboPins {
  readonly #kubo: Kubo
  readonly #own: string
  readonly #takesUnnamed: boolean
  readonly #stopped: AbortSignal

  /**
   * @param options.own The name of Berth's pins, without `+`.
   * @param options.takesUnnamed Whether pins without a name are Berth's once it pins the same: IPFS Cluster made them.
   * @param stopped Ends work that continues without its caller.
   */
  constructor(kubo: Kubo, options: { own: string; takesUnnamed: boolean }, stopped: AbortSignal) {
    this.#kubo = kubo
    this.#own = options.own
    this.#takesUnnamed = options.takesUnnamed
    this.#stopped = stopped
  }

  /** Whether Berth has pinned a CID, even if others have too. */
  async has(cid: CID, signal: AbortSignal): Promise<boolean> {
    return this.#isOurs(await this.#nameOf(cid, signal))
  }

  /** Every CID that Berth has pinned. */
  async *list(signal: AbortSignal): AsyncGenerator<CID> {
    const params = { type: 'recursive', names: true, stream: true, name: this.#own }
    const options = { signal, idleMs: LIST_IDLE_MS }
    const rows = this.#kubo.stream.rows<{ Cid: string; Name?: string }>('pin/ls', params, options)
    for await (const row of rows) if (this.#isOurs(row.Name ?? '')) yield CID.parse(row.Cid)
  }

  /** Retrieves a DAG and pins it, as in `Storage.pin`. @throws whatever `retrieveAndPin` throws. */
  async retrieve(cid: CID, options: PinOptions): Promise<{ blocks: number; bytes: number }> {
    // If a pin is added again, Kubo drops it first, so a failure would lose it.
    const existing = await this.#nameOf(cid, options.signal)
    if (this.#isOurs(existing)) return { blocks: 0, bytes: 0 }
    return retrieveAndPin(this.#kubo, cid, this.#claim(existing), options)
  }

  /**
   * Pins newly added content. It continues if the caller stops waiting: if someone else has pinned the same content
   * since the check, Kubo has dropped that pin to add it again.
   * @param base A pin of Berth's that already has most of it.
   */
  async keep(cid: CID, base?: CID): Promise<void> {
    const existing = await this.#nameOf(cid, this.#stopped)
    if (this.#isOurs(existing)) return
    if (existing === null && base && (await this.#extend(base, cid, this.#stopped))) return
    await this.#pinLocal(cid, this.#claim(existing), this.#stopped)
  }

  /** Releases Berth's part of a pin. False if Berth has none. */
  async release(cid: CID, signal: AbortSignal): Promise<boolean> {
    const name = await this.#nameOf(cid, signal)
    if (name === null || !this.#isOurs(name)) return false
    try {
      if (name !== this.#own) await this.#pinLocal(cid, name.slice(this.#own.length + 1), signal)
      else
        await this.#kubo.client.call('pin/rm', { signal, deadlineMs: UNPIN_MS }, (rpc, signal) =>
          rpc.pin.rm(cid, { signal, ...OFFLINE }),
        )
      return true
    } catch (error) {
      if (isNotPinned(error)) return false
      throw error
    }
  }

  #isOurs(name: string | null): boolean {
    return name === this.#own || (name?.startsWith(`${this.#own}+`) ?? false)
  }

  /** The name under which Berth pins a CID that already has a pin called `existing` (null: none). */
  #claim(existing: string | null): string {
    if (existing === null || (existing === '' && this.#takesUnnamed)) return this.#own
    return this.#isOurs(existing) ? existing : cut(`${this.#own}+${existing}`)
  }

  /** The name of a CID's recursive pin, or null if it has none. */
  async #nameOf(cid: CID, signal: AbortSignal): Promise<string | null> {
    try {
      const limits = { signal, deadlineMs: SHORT_MS }
      return await this.#kubo.client.call('pin/ls', limits, async (rpc, signal) => {
        const query = { paths: cid, type: 'recursive', names: true, signal, ...OFFLINE } as const
        let name: string | undefined
        // Read to the end: abandoning a response closes its connection.
        for await (const pin of rpc.pin.ls(query)) name = pin.name ?? ''
        if (name === undefined) throw new Error('neither a pin nor an error')
        return name
      })
    } catch (error) {
      if (isNotPinned(error)) return null
      throw error
    }
  }

  /**
   * Pins a DAG whose blocks Kubo has. @throws StorageError `unavailable` if Kubo's GC has removed one: the caller
   * imports again.
   */
  async #pinLocal(cid: CID, name: string, signal: AbortSignal): Promise<void> {
    try {
      await retrieveAndPin(this.#kubo, cid, name, { stallMs: RENAME_STALL_MS, offline: true, signal })
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== 'not_found') throw error
      throw new StorageError('unavailable', `Blocks of ${cid} were removed before they were pinned`, {
        cause: error,
      })
    }
  }

  /**
   * Pins newly added content of a pinned DAG, without walking through the rest of it again. False if Kubo cannot, for
   * example because the base's pin is gone by now, or also has someone else's name, which Kubo would give the new pin.
   */
  async #extend(base: CID, cid: CID, signal: AbortSignal): Promise<boolean> {
    if ((await this.#nameOf(base, signal)) !== this.#own) return false
    try {
      await this.#kubo.client.call('pin/update', { signal, deadlineMs: EXTEND_PIN_MS }, (rpc, signal) =>
        rpc.pin.update(base, cid, { unpin: false, signal, ...OFFLINE }),
      )
      return true
    } catch (error) {
      if (error instanceof KuboError) return false
      throw error
    }
  }
}

/** Shortens a pin's name to the length that Kubo accepts. */
function cut(name: string): string {
  return Buffer.byteLength(name) <= NAME_LIMIT
    ? name
    : new TextDecoder().decode(Buffer.from(name).subarray(0, NAME_LIMIT - 3))
}
