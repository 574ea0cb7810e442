/**
 * Releases memory that a process holds only because nothing else has needed it: while it is idle, and of bodies that it
 * has forwarded.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How long a process must do almost nothing before it counts as idle. */
const REST_MS = 5000
/** The share of one processor that counts as almost nothing: loops that poll for work use about 0.01. */
const RESTING = 0.05
/** Less memory than this does not justify a collection, which stops the process for about a tenth of a second. */
const WORTH_BYTES = 8_388_608

/**
 * After this many bytes of forwarded buffers, the young generation is collected: a quarter of what V8 lets buffers use
 * before it collects the whole heap for them.
 */
const PASSED_BYTES = 16_777_216

type Collect = (
  options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' } | { type: 'minor' },
) => void

let collector: Collect | undefined
function collect(options: Parameters<Collect>[0]): void {
  if (!collector) {
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as Collect
  }
  collector(options)
}

let passedBytes = 0
/**
 * Releases the memory of forwarded bodies; call it for each buffer. Such buffers are young when they are no longer
 * needed, so a collection of the young generation, a millisecond or two, frees them. V8 itself waits for 64 MB of them
 * and then scans the whole heap, which takes half of the time needed to forward a large body.
 * @param every Bytes after which it collects. A worker's heap is nearly full after a rest, so V8 scans it every 12 MB.
 */
export function releasePassed({ length }: Uint8Array, every = PASSED_BYTES): void {
  passedBytes += length
  if (passedBytes < every) return
  passedBytes = 0
  collect({ type: 'minor' })
}

/**
 * Once a process is idle, releases the memory that it needed for its start or a burst of work. V8 keeps the pages of
 * its heap, and code that ran once, until it needs them, and the C library does the same with freed buffers. Work that
 * arrives during the collection waits for a tenth of a second; a busy process is left alone.
 */
export function releaseMemoryAtRest(): void {
  let trim: (() => void) | undefined
  let least = 0
  let before = performance.eventLoopUtilization()
  setInterval(async () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > RESTING || process.memoryUsage.rss() < least + WORTH_BYTES) return
    trim ??= await openTrim()
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    trim()
    least = process.memoryUsage.rss()
  }, REST_MS).unref()
}

/**
 * The C library's `malloc_trim`. By default, the library keeps free memory between blocks in use: 300 MB of uploads
 * leave 60 MB. Does nothing with libraries other than glibc.
 */
async function openTrim(): Promise<() => void> {
  try {
    const { load } = await import('koffi')
    const trim = load(null).func('int malloc_trim(size_t pad)')
    return () => trim(0)
  } catch {
    return () => {}
  }
}
