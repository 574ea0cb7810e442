/**
 * A storage that moves from one node to another while it is in use. Both nodes get all new content, and the previous one
 * is read, because only it has everything until the move is complete. The comparison of pins copies the rest: content
 * that only one node has counts as missing (`parts`), and pinning it again copies it.
 */
import type { CID } from 'multiformats/cid'
import { partsOf, type Storage, StorageError } from './port.ts'

/** How long both nodes may take to identify themselves. */
const START_MS = 30_000

type Limits = { signal: AbortSignal }

/**
 * @param next the node that will remain.
 * @param previous the node that goes. @param isPreviousOwn whether `gc`, which reports on the next node, collects here as well.
 */
export function createMovingStorage({
  next,
  previous,
  isPreviousOwn,
}: {
  next: Storage
  previous: Storage
  isPreviousOwn: boolean
}): Storage {
  const nodes = [previous, next]
  const waiting = new Set(nodes)

  const copy = async (cid: CID, from: Storage, { signal }: Limits): Promise<void> => {
    const to = from === previous ? next : previous
    await to.importCar(from.exportCar(cid, { signal }), { isOwn: true, signal })
  }
  /** Reads from the previous node, or from the next one if the previous does not have it or does not respond. */
  const read = <T>(work: (node: Storage) => Promise<T>): Promise<T> =>
    work(previous).catch((error) => {
      if (!mayBeElsewhere(error)) throw error
      return work(next)
    })
  const readEach = <T>(work: (node: Storage) => AsyncIterable<T>) => firstOf(work(previous), () => work(next))
  const both = (ask: (node: Storage) => Promise<boolean>) => Promise.all(nodes.map(ask))

  return {
    network: next.network,
    driver: next.driver,

    async start() {
      // All of them: while one is away, the other one is read.
      const started = await Promise.allSettled(
        [...waiting].map(async (node) => {
          await node.start()
          waiting.delete(node)
        }),
      )
      const reasons = started.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
      if (reasons.length > 0) throw reasons.find((reason) => !(reason instanceof StorageError)) ?? reasons[0]
      const signal = AbortSignal.timeout(START_MS)
      const [one, other] = await Promise.all(nodes.map((node) => node.info({ signal })))
      if (one?.peerId && one.peerId === other?.peerId)
        throw new Error(`The ${next.network} network's previous node is its present one: ${one.peerId}`)
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },

    async pin(cid, options) {
      const [isPrevious, isNext] = await both((node) => node.isPinned(cid, options))
      if (isPrevious && isNext) return { blocks: 0, bytes: 0 }
      const from = isPrevious ? previous : next
      const pinned = await from.pin(cid, options)
      await copy(cid.toV1(), from, options)
      return pinned
    },
    unpin: async (cid, limits) => (await both((node) => node.unpin(cid, limits))).includes(true),
    isPinned: async (cid, limits) => !(await both((node) => node.isPinned(cid, limits))).includes(false),
    ...(next.replicas && { replicas: next.replicas }),
    ...(next.minReplicas && { minReplicas: next.minReplicas }),
    async *list(limits) {
      const known = new Set<string>()
      for await (const cid of next.list(limits)) known.add(`${cid.toV1()}`)
      for await (const cid of previous.list(limits)) if (known.has(`${cid.toV1()}`)) yield cid
    },
    parts: nodes.flatMap(partsOf),

    async add(entries, options) {
      const added = await previous.add(entries, options)
      await copy(added.cid, previous, options)
      return added
    },
    async importCar(bytes, options) {
      const imported = await previous.importCar(bytes, options)
      await copy(imported.cid, previous, options)
      return imported
    },
    async build(make, { base, signal }) {
      const made: CID[] = []
      const root = await previous.build(
        (put) =>
          make(async (block) => {
            await put(block)
            made.push(block.cid)
          }),
        { base, signal },
      )
      if (!base || !(await next.isPinned(base, { signal }))) {
        await copy(root, previous, { signal })
        return root
      }
      return next.build(
        async (put) => {
          for (const cid of made) await put({ cid, bytes: await previous.block(cid, { signal }) })
          return root
        },
        { base, signal },
      )
    },

    exportCar: (cid, limits) => readEach((node) => node.exportCar(cid, limits)),
    blocks: (cid, limits) => readEach((node) => node.blocks(cid, limits)),
    cat: (cid, options) => readEach((node) => node.cat(cid, options)),
    ls: (cid, limits) => readEach((node) => node.ls(cid, limits)),
    resolve: (cid, options) => read((node) => node.resolve(cid, options)),
    block: (cid, limits) => read((node) => node.block(cid, limits)),
    stat: (cid, limits) => read((node) => node.stat(cid, limits)),

    async gc(options) {
      if (isPreviousOwn) await previous.gc(options)
      return next.gc(options)
    },
    info: (limits) => next.info(limits),
    shortage: async (limits) => (await previous.shortage(limits)) ?? next.shortage(limits),
  }
}

const mayBeElsewhere = (error: unknown): boolean =>
  error instanceof StorageError && (error.code === 'not_found' || error.isAway)

/** The first source, or the second if the first fails before its first item. */
async function* firstOf<T>(first: AsyncIterable<T>, second: () => AsyncIterable<T>): AsyncGenerator<T> {
  let hasBegun = false
  try {
    for await (const item of first) {
      hasBegun = true
      yield item
    }
  } catch (error) {
    if (hasBegun || !mayBeElsewhere(error)) throw error
    yield* second()
  }
}
