/** Fills its memory for a moment, with objects or with `buffers`, and prints its resident bytes every 100 ms. */
import { releaseMemoryAtRest } from '../../../src/lib/process/memory-at-rest.ts'

releaseMemoryAtRest()
const kept: Buffer[] = []
const make = {
  objects: () => Array.from({ length: 2_000_000 }, (_, n) => ({ n })),
  // Buffers like those of uploads: between small ones that stay, so that the C library cannot return them by itself.
  buffers: () =>
    Array.from({ length: 2000 }, () => {
      const buffer = Buffer.allocUnsafeSlow(65_536).fill(1)
      kept.push(Buffer.allocUnsafeSlow(5000))
      return buffer
    }),
}
let garbage: unknown[] | undefined = make[process.argv[2] as keyof typeof make]()
setInterval(() => {
  garbage = undefined
  console.log(`${process.memoryUsage.rss()} ${garbage} ${kept.length}`)
}, 100)
