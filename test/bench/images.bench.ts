/**
 * How many images the gateway converts, and how many already converted images it serves: Berth on the embedded parts
 * compared with sharp, called on the same image in this process with the same concurrency.
 */
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { startStack } from '../support/stack.ts'
import { load } from './support/load.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { createClient } from './support/transfer.ts'

export const title = 'Images'

/** The default of `processes` of BERTH_IMAGES. */
const PROCESSES = 2
const IMAGES = 60
const ROUNDS = 3
/** A photo of 12 million pixels, of about a megabyte. */
const PHOTO = { width: 4000, height: 3000, channels: 3, background: '#abc' } as const
const NOISE = { type: 'gaussian', mean: 128, sigma: 30 } as const

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind: 'embedded' })
  ending.defer(() => stack.stop())
  const client = await createClient(stack)
  const path = join(tmpdir(), `berth-bench-${process.pid}.jpg`)
  ending.defer(() => rm(path, { force: true }))
  const photo = await sharp({ create: { ...PHOTO, noise: NOISE } })
    .blur(2)
    .jpeg({ quality: 85 })
    .toBuffer()
  await sharp(photo).toFile(path)
  const cid = await client.upload(path, 'public')
  const { url, host } = client.gateway
  sharp.concurrency(1)
  sharp.cache(false)

  const rounds: { converted: number; kept: number; bare: number }[] = []
  for (let round = -1; round < ROUNDS; round++) {
    // Another width each time, so that no image was converted before.
    const width = (n: number) => 300 + (round + 1) * IMAGES + n
    const gateway = {
      url,
      method: 'GET',
      path: (n: number) => `/ipfs/${cid}?img-width=${width(n)}&img-format=webp`,
      headers: { host },
    } as const
    const { perSecond: converted } = await load(gateway, IMAGES, PROCESSES)
    const { perSecond: kept } = await load(gateway, IMAGES, PROCESSES)
    const bare = await convertAll(photo, width)
    if (round >= 0) rounds.push({ converted, kept, bare }) // the first is the warm-up
  }
  const show = (figure: number) => `${figure.toFixed(0)} /s`
  const of = (name: 'converted' | 'kept'): Result => ({
    what: name === 'converted' ? 'a photo of 12 MP to a thumbnail' : 'the same once more',
    berth: show(median(rounds.map((round) => round[name]))),
    bare: show(median(rounds.map(({ bare }) => bare))),
    ratio: median(rounds.map((round) => round[name] / round.bare)),
  })
  return [of('converted'), of('kept')]
}

/** Images per second of sharp itself. */
async function convertAll(photo: Buffer, width: (n: number) => number): Promise<number> {
  let next = 0
  const one = async () => {
    while (next < IMAGES)
      await sharp(photo).autoOrient().resize(width(next++)).webp({ quality: 85 }).toBuffer()
  }
  const start = performance.now()
  await Promise.all(Array.from({ length: PROCESSES }, one))
  return IMAGES / ((performance.now() - start) / 1000)
}

if (import.meta.main) print(title, await bench())
