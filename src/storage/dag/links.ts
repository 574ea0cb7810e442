import { Worker } from 'node:worker_threads'
import * as dagPb from '@ipld/dag-pb'
import { CID } from 'multiformats/cid'
import { StorageError } from '../port.ts'
import { assertSupported, isLeafCodec, readLinks, undecodable } from './codecs.ts'
import { LINKS_AT_ONCE, OBJECT_BYTES, OBJECT_CPU_MS, OBJECT_MEMORY_MIB, turn } from './limits.ts'
import type { ObjectLinks } from './object-thread.program.ts'
import { openDagPb } from './pb-links.ts'

/**
 * The links of a block, each CID once, in order, and the size that a dag-pb block announces for its whole DAG (null for
 * the other codecs). A block with many links does not block the rest of the process. `sizes` is what a dag-pb block
 * claims about the DAG below each link (`Tsize`); empty for the other codecs.
 * @throws StorageError `invalid_object` if the bytes cannot be decoded with the CID's codec.
 */
export async function distinctLinks(
  cid: CID,
  bytes: Uint8Array,
): Promise<{ links: CID[]; sizes: number[]; totalBytes: number | null }> {
  assertSupported(cid)
  if (cid.code === dagPb.code) return dagPbLinks(cid, bytes)
  if (isLeafCodec(cid)) return { links: [], sizes: [], totalBytes: bytes.length }
  const links =
    bytes.length > OBJECT_BYTES ? await linksOfObject(cid, bytes) : distinct(readLinks(cid, bytes).links)
  return { links, sizes: [], totalBytes: links.length === 0 ? bytes.length : null }
}

/**
 * The links of a block in order, including repeated ones; from a large dag-cbor or dag-json block, each link once.
 * @throws StorageError as {@link distinctLinks}.
 */
export async function orderedLinks(cid: CID, bytes: Uint8Array): Promise<CID[]> {
  if (cid.code !== dagPb.code) {
    return bytes.length > OBJECT_BYTES ? (await distinctLinks(cid, bytes)).links : readLinks(cid, bytes).links
  }
  const all: CID[] = []
  try {
    for await (const links of openDagPb(bytes).links.some()) all.push(...links.map(({ Hash }) => Hash))
  } catch (error) {
    throw undecodable(cid, error as Error)
  }
  return all
}

/** Each CID once, in order. */
const distinct = (cids: CID[]): CID[] => [...new Map(cids.map((cid) => [`${cid}`, cid])).values()]

async function dagPbLinks(
  cid: CID,
  bytes: Uint8Array,
): Promise<{ links: CID[]; sizes: number[]; totalBytes: number }> {
  const known = new Set<string>()
  const links: CID[] = []
  const sizes: number[] = []
  let totalBytes = bytes.length
  try {
    for await (const some of openDagPb(bytes).links.some()) {
      for (const { Hash, Tsize = 0 } of some) {
        totalBytes += Tsize
        const name = Buffer.from(Hash.bytes).toString('latin1')
        if (known.has(name)) continue
        known.add(name)
        links.push(Hash)
        sizes.push(Tsize)
      }
    }
  } catch (error) {
    throw undecodable(cid, error as Error)
  }
  return { links, sizes, totalBytes }
}

/** The thread gave up on a block because of the limits in `limits.ts`. The block may well be valid. */
export class OverBounds extends StorageError {
  constructor(cid: CID, reason: string) {
    super('invalid_object', `Block ${cid} does not decode: ${reason}`)
  }
}

type ParsedLinks = ObjectLinks | { givenUp: string }

/** Finds the links of large dag-cbor and dag-json blocks: no part of such a block can be decoded separately. */
let thread: Worker | null = null
/** How often the thread's processor time is checked. */
const CHECK_MS = 500
/** The last block being decoded: the thread's memory and time are for one at a time. */
let last: Promise<unknown> = Promise.resolve()

/**
 * The links of a dag-cbor or dag-json block, each CID once, in order.
 * @throws StorageError `invalid_object` if it cannot be decoded; {@link OverBounds} if not within the limits of
 *   `limits.ts`.
 */
async function linksOfObject(cid: CID, bytes: Uint8Array): Promise<CID[]> {
  const run = last.then(() => ask(cid, bytes))
  last = run.catch(() => {})
  const answer = await run
  if ('givenUp' in answer) throw new OverBounds(cid, answer.givenUp)
  if ('error' in answer) throw undecodable(cid, { message: answer.error })
  const links: CID[] = []
  for (let [i, at] = [0, 0]; i < answer.lengths.length; i++) {
    if (i > 0 && i % LINKS_AT_ONCE === 0) await turn()
    const end = at + (answer.lengths[i] as number)
    links.push(CID.decode(answer.cids.subarray(at, end)))
    at = end
  }
  return links
}

function ask(cid: CID, bytes: Uint8Array): Promise<ParsedLinks> {
  thread ??= new Worker(new URL('./object-thread.program.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: OBJECT_MEMORY_MIB },
  })
  const asked = thread
  return new Promise((resolve) => {
    let isOver = false
    const end = (answer: ParsedLinks) => {
      isOver = true
      clearInterval(checks)
      asked.off('message', end).off('error', onError)
      asked.unref()
      resolve(answer)
    }
    const giveUp = (givenUp: string) => {
      end({ givenUp })
      thread = null
      asked.on('error', () => {}) // it may still report why it died
      void asked.terminate()
    }
    const onError = ({ message }: Error) => giveUp(message)
    // The limit is the thread's processor time, not wall-clock time: on a busy machine, a valid block takes longer.
    const before = asked.cpuUsage()
    const check = async () => {
      const { user, system } = await asked.cpuUsage(await before)
      if (user + system > OBJECT_CPU_MS * 1000 && !isOver)
        giveUp(`it takes more than ${OBJECT_CPU_MS} ms of a processor`)
    }
    // Fails if the thread dies, which `error` reports.
    const checks = setInterval(() => check().catch(() => {}), CHECK_MS)
    before.catch(() => {})
    asked.on('message', end).on('error', onError)
    asked.ref()
    asked.postMessage({ cid: cid.bytes, bytes })
  })
}
