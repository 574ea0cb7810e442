import type { CID } from 'multiformats/cid'
import { carHeader, carSection, openCar } from '../car.ts'
import { inlineBytes, readLinks } from '../codecs.ts'
import type { ReadBlock } from '../unixfs.ts'
import { untilAborted } from '../until-aborted.ts'
import type { BlockFolder } from './blocks.ts'
import { Frontier } from './frontier.ts'
import { Visited } from './visited.ts'
import { WriteBehind } from './write-behind.ts'

/** Stores the blocks of a CAR, see `Storage.importCar`; the pin is the caller's. @returns its root. */
export async function importCar(
  stream: AsyncIterable<Uint8Array>,
  blocks: BlockFolder,
  signal: AbortSignal,
): Promise<CID> {
  const car = await openCar(untilAborted(stream, signal))
  const writes = new WriteBehind(blocks)
  for await (const { cid, bytes } of car.blocks) {
    await writes.put(cid, bytes)
  }
  await writes.settle()
  return car.root
}

/** A DAG as a CAR, see `Storage.exportCar`. */
export async function* exportCar(
  root: CID,
  read: ReadBlock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const visited = new Visited()
  const frontier = new Frontier(async (cid) => readLinks(cid, await read(cid)).links)
  yield carHeader(root)
  for (let cid: CID | null = root; cid; cid = await frontier.next()) {
    signal.throwIfAborted()
    if (!visited.add(cid)) continue
    const bytes = await read(cid)
    if (!inlineBytes(cid)) yield* carSection({ cid, bytes })
    if (readLinks(cid, bytes).links.length > 0) frontier.push(cid)
  }
}
