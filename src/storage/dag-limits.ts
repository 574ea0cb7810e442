/**
 * Bounds on the work that one DAG can cause. A DAG of a few blocks can have more paths than anybody can walk, as a
 * node may link one child thousands of times: so work is bounded by blocks that are visited and by time, and no
 * number of links or size that a node claims is believed.
 */

/**
 * Links that are decoded in one go, at about 4 microseconds each. A node of 2 MiB has up to 50,000: decoded at
 * once, it would hold up everybody else of the process for 200 ms.
 */
export const LINKS_AT_ONCE = 128

/** Links that are looked up in one go, in sets of those that are known already. */
export const LINKS_PER_TURN = 1024

/**
 * Blocks above this size are hashed, and looked through, when it is their turn (see `turn`): a megabyte takes a
 * millisecond or more. Smaller ones cost more to find than to hash: a reader of a file takes a turn for each.
 */
export const LARGE_BLOCK_BYTES = 32 * 1024

/**
 * A file must have a kilobyte for each block that a reader meets, those that come again counted again. Importers
 * make leaves of 256 KiB or 1 MiB, the smallest that are known 4 KiB. Up to `FREE_BLOCKS` do not count: a log that
 * was appended to line by line is small.
 */
export const FREE_BLOCKS = 16_384
export const BYTES_PER_BLOCK = 1024

/**
 * Bytes of the blocks of a DAG beside its content, such as names and links, that its size leaves out. What is more than
 * this and than the content counts as size: a directory can have anything in its nodes, and would cost its owner nothing.
 */
export const FREE_STRUCTURE_BYTES = 512 * 1024

/** Fields that the UnixFS part of a node may have: a file has one for each of its links, and a few more. */
export const UNIXFS_FIELDS = 65_536

/** Most places of a node of a sharded directory, as in Kubo. Importers make 256. */
export const SHARD_PLACES = 1024

/** Larger dag-cbor and dag-json blocks are decoded in a thread of their own: 2 MiB of tiny values take half a second. */
export const OBJECT_BYTES = 16 * 1024
/** Most processor time that such a block may take there. */
export const OBJECT_CPU_MS = 10_000
/** Memory that the thread may take, in MiB. */
export const OBJECT_MEMORY_MIB = 512
/** A path leads through dag-cbor and dag-json blocks up to this size. */
export const OBJECT_PATH_BYTES = 64 * 1024

/** Longest pause between two turns, in milliseconds. */
const LONGEST_PAUSE = 5
/** A turn that took less needs no pause. */
const SHORT_TURN = 0.3

const waiting: (() => void)[] = []
let isRunning = false

/**
 * Waits for the caller's turn to work on blocks of a DAG for about a millisecond, until it waits for anything else. In
 * a process one walker after the other has a turn. While several wait, there are pauses as long as the turns: however
 * many walk, other requests wait for one short turn.
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
  // Work of others meanwhile counts too: the busier the process is, the longer the pause.
  setImmediate(() => {
    const spent = performance.now() - start
    if (spent < SHORT_TURN || waiting.length === 0) next()
    else setTimeout(next, Math.min(spent, LONGEST_PAUSE))
  })
}
