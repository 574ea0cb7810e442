/** Fills its heap for a moment, and prints its resident bytes every 100 ms. */
import { releaseMemoryAtRest } from '../../../src/lib/process/memory-at-rest.ts'

releaseMemoryAtRest()
let garbage: unknown[] | undefined = Array.from({ length: 2_000_000 }, (_, n) => ({ n }))
setInterval(() => {
  garbage = undefined
  console.log(`${process.memoryUsage.rss()} ${garbage}`)
}, 100)
