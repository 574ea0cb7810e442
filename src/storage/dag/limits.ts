/**
 * Limits on the work that one DAG can cause. A DAG of a few blocks can have more paths than anyone can walk, because a
 * node may link one child thousands of times. So work is limited by visited blocks and by time, and no number of links
 * or size that a node claims is trusted.
 */

/**
 * Links that are decoded at once, at about 4 microseconds each. A node of 2 MiB has up to 50,000: decoding them all at
 * once would block the whole process for 200 ms.
 */
export const LINKS_AT_ONCE = 128

/** Links that are looked up at once in sets of known links. */
export const LINKS_PER_TURN = 1024

/**
 * Blocks above this size wait for a turn (see `turn`) before they are hashed and scanned: a megabyte takes a
 * millisecond or more. Finding smaller blocks costs more than hashing them: a reader of a file takes a turn for each.
 */
export const LARGE_BLOCK_BYTES = 32 * 1024

/**
 * A file must have a kilobyte for each block that a reader meets, counting repeated blocks again. Importers create
 * leaves of 256 KiB or 1 MiB; the smallest known are 4 KiB. The first `FREE_BLOCKS` do not count: a log that was
 * appended to line by line is small.
 */
export const FREE_BLOCKS = 16_384
export const BYTES_PER_BLOCK = 1024

/**
 * Bytes of a DAG's blocks besides its content, such as names and links, that its size leaves out. Bytes beyond this and
 * the content count towards the size: a directory can have anything in its nodes, which would otherwise cost its owner
 * nothing.
 */
export const FREE_STRUCTURE_BYTES = 512 * 1024

/** Maximum fields in the UnixFS part of a node: a file has one for each of its links, and a few more. */
export const UNIXFS_FIELDS = 65_536

/** Maximum places in a node of a sharded directory, as in Kubo. Importers use 256. */
export const SHARD_PLACES = 1024

/** Larger dag-cbor and dag-json blocks are decoded in a separate thread: 2 MiB of tiny values take half a second. */
export const OBJECT_BYTES = 16 * 1024
/** Maximum processor time for such a block in the thread. */
export const OBJECT_CPU_MS = 10_000
/** Maximum memory of the thread, in MiB. */
export const OBJECT_MEMORY_MIB = 512
/** Maximum size of dag-cbor and dag-json blocks in a path. */
export const OBJECT_PATH_BYTES = 64 * 1024

/** Longest pause between two turns, in milliseconds. */
const LONGEST_PAUSE = 5
/** A turn that took less than this needs no pause. */
const SHORT_TURN = 0.3

const waiting: (() => void)[] = []
let isRunning = false

/**
 * Waits for the caller's turn to work on blocks of a DAG, for about a millisecond, until it waits for anything else. In
 * a process, the walkers take turns. While several are waiting, there are pauses as long as the turns, so other
 * requests wait for one short turn, however many walkers there are.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (isRunning) return
    isRunning = true
    setImmediate(next)
  })
}

function next(): void {
  const resume = waiting.shift()
  if (!resume) {
    isRunning = false
    return
  }
  const start = performance.now()
  resume()
  // Other work in between counts too: the busier the process, the longer the pause.
  setImmediate(() => {
    const spent = performance.now() - start
    if (spent < SHORT_TURN || waiting.length === 0) next()
    else setTimeout(next, Math.min(spent, LONGEST_PAUSE))
  })
}
