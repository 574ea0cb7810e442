/** Memory that a process holds only because nothing has asked it for it yet: at rest, and of bodies that it has passed on. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How long a process does next to nothing before it is at rest. */
const REST_MS = 5000
/** Share of one processor below which that is next to nothing: loops that look for work take about 0.01. */
const RESTING = 0.05
/** Less than this is not worth a collection, which stops the process for about a tenth of a second. */
const WORTH_BYTES = 8_388_608

/**
 * After so many bytes of passed buffers the young generation is collected: a quarter of what V8 lets buffers take before
 * it collects the whole heap for them.
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
 * Gives back the memory of bodies that are passed on, to be called for each buffer: they are young when they are done
 * with, so a collection of the young generation, a millisecond or two, takes them away. V8 itself waits for 64 MB of
 * them and goes through the whole heap then, which is half of what it takes to pass a large body on.
 */
export function releasePassed({ length }: Uint8Array): void {
  passedBytes += length
  if (passedBytes < PASSED_BYTES) return
  passedBytes = 0
  collect({ type: 'minor' })
}

/**
 * Gives back what a process needed for its start, or for a burst of work, once it is at rest: V8 by itself keeps the
 * pages of its heap, and code that ran once, until it needs them, and so does the C library with freed buffers. Work
 * that comes meanwhile waits for a tenth of a second; a process that works is left alone.
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
 * `malloc_trim` of the C library, which by itself keeps what lies between pieces that are in use: 300 MB of uploads leave
 * 60 MB. Does nothing where that is another library than glibc.
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
