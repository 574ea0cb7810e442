/** Memory that a process holds only because nothing has asked it for it yet. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How long a process does next to nothing before it is at rest. */
const REST_MS = 5000
/** Share of one processor below which that is next to nothing: loops that look for work take about 0.01. */
const RESTING = 0.05
/** Less than this is not worth a collection, which stops the process for about a tenth of a second. */
const WORTH_BYTES = 8_388_608

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/**
 * Gives back what a process needed for its start, or for a burst of work, once it is at rest: V8 by itself keeps the
 * pages of its heap, and code that ran once, until it needs them. Work that comes meanwhile waits for a tenth of a
 * second; a process that works is left alone.
 */
export function releaseMemoryAtRest(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  let least = 0
  let before = performance.eventLoopUtilization()
  setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > RESTING || process.memoryUsage.rss() < least + WORTH_BYTES) return
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    least = process.memoryUsage.rss()
  }, REST_MS).unref()
}
