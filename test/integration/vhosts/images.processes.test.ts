/** The processes that convert images: hostile images, and their cost. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, describe, it, type TestContext } from 'node:test'
import sharp from 'sharp'
import { DiskReserve } from '../../../src/lib/disk-reserve.ts'
import { FolderCache } from '../../../src/lib/folder-cache.ts'
import { createLogger } from '../../../src/log.ts'
import { Images } from '../../../src/vhosts/gateways/images/images.ts'
import { askedImage } from '../../../src/vhosts/gateways/images/options.ts'
import type { ImageLimits } from '../../../src/vhosts/gateways/images/processes.ts'
import { passAtOnce } from '../../support/clock.ts'
import { childrenOf } from '../../support/images.ts'
import { holdUp, until } from '../../support/processes.ts'

const PIXELS = 30_000_000
const MiB = 1_048_576
const noise = (side: number) =>
  sharp({
    create: {
      width: side,
      height: side,
      channels: 3,
      background: '#fff',
      noise: { type: 'gaussian', mean: 128, sigma: 30 },
    },
  })
const small = await noise(100).png().toBuffer()
const large = await noise(4000).jpeg({ quality: 50 }).toBuffer()

const log = createLogger('test', 'silent')
const disk = new DiskReserve({ folders: {}, reserveBytes: 0 })
const cache = new FolderCache({
  folder: '/nowhere',
  maxBytes: 0,
  maxEntryBytes: 0,
  isVerified: true,
  disk,
  log,
})
const opened: Images[] = []
after(() => {
  for (const images of opened) images.close()
})
let count = 0
function open(limits: Partial<ImageLimits> = {}) {
  const images = new Images({ processes: 1, seconds: 60, maxPixels: PIXELS, ...limits }, cache, log)
  opened.push(images)
  return (
    bytes: Buffer,
    query: string,
    {
      cid = `${count++}`,
      size = bytes.length,
      workspaceId = 'a',
      gone = new AbortController().signal,
      onRead = () => {},
    } = {},
  ) => {
    const read = async function* () {
      onRead()
      yield bytes
    }
    const asked = askedImage(new URL(`https://gateway/?${query}`))
    assert.ok(asked)
    return images.convert({ cid, size, workspaceId, isPublic: false, read }, asked.options, gone)
  }
}

/** The peak memory of a process in MiB; 0 once it has ended. */
const peakOf = async (pid: number) => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
}
/** The image processes that this process has started since then. */
const newChildren = async (before: number[]) =>
  until('a process converts', async () => {
    const children = (await childrenOf(process.pid)).filter((pid) => !before.includes(pid))
    return children.length > 0 && children
  })

/** Makes the process of `open` hang at its next image. */
async function hang(convert: ReturnType<typeof open>, before: number[]): Promise<void> {
  await convert(small, 'img-width=10')
  const [pid = 0] = await newChildren(before)
  await holdUp(pid)
}

/**
 * Raises the time for an image to 5 s, because a process starts too slowly on a busy machine.
 * @returns a function that undoes it.
 */
function shorten(t: TestContext): () => void {
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  const { mock } = t.mock.method(AbortSignal, 'timeout', () => timeout(5000))
  return () => mock.restore()
}

describe('image processes', () => {
  it('an image process stays within its memory limit, whatever the image', async () => {
    const before = await childrenOf(process.pid)
    const convert = open()
    // A progressive or interlaced image is completely in memory before its first line is available.
    const hostile = sharp({
      create: { width: 5000, height: 5000, channels: 4, background: { r: 1, g: 2, b: 3, alpha: 0.5 } },
    })
    const bytes = await hostile
      .toColourspace('rgb16')
      .png({ progressive: true, compressionLevel: 1 })
      .toBuffer()
    const answer = convert(bytes, 'img-width=4096&img-format=webp').then(
      () => 'converted',
      ({ message }) => message,
    )
    const [pid = 0] = await newChildren(before)
    let peak = 0
    let isDone = false
    const ended = answer.finally(() => {
      isDone = true
    })
    await until('it is done', async () => {
      peak = Math.max(peak, await peakOf(pid))
      return isDone
    })
    await ended
    assert.ok(peak > 100 && peak < 600, `${peak} MiB`)
  })

  it('an image process that takes too long is killed, and its image is refused for a while', async (t) => {
    const before = await childrenOf(process.pid)
    const convert = open()
    await hang(convert, before)
    const restore = shorten(t)
    await assert.rejects(convert(small, 'img-width=20', { cid: 'slow' }), {
      status: 503,
      code: 'image_failed',
      message: 'Converting the image took longer than 60 s',
    })
    restore()
    await until('it has ended', async () =>
      (await childrenOf(process.pid)).every((pid) => before.includes(pid)),
    )
    await assert.rejects(convert(small, 'img-width=20', { cid: 'slow' }), { message: /a moment ago$/ })
    assert.ok((await convert(small, 'img-width=10', { cid: 'slow' })).length > 0)
  })

  it('an image process that was killed between two images is replaced unnoticed', async () => {
    const before = await childrenOf(process.pid)
    const convert = open()
    await convert(small, 'img-width=10')
    const [pid = 0] = await newChildren(before)
    // Its parent has not heard of the exit when the next image comes.
    process.kill(pid, 'SIGKILL')
    assert.ok((await convert(small, 'img-width=11')).length > 0)
  })

  it('an image process exits after half a minute without an image', async (t) => {
    const before = await childrenOf(process.pid)
    const convert = open()
    await convert(small, 'img-width=10')
    const [pid = 0] = await newChildren(before)
    passAtOnce(t, 30_000)
    await convert(small, 'img-width=11')
    await until('it has ended', async () => !(await childrenOf(process.pid)).includes(pid))
  })

  it('an image process has limits, and no setting or secret of Berth', async () => {
    process.env.BERTH_TEST_SECRET = 'secret'
    const before = await childrenOf(process.pid)
    await open()(small, 'img-width=10')
    const [pid] = await newChildren(before)
    assert.doesNotMatch(await readFile(`/proc/${pid}/environ`, 'latin1'), /BERTH|HOME|secret/)
    const limits = await readFile(`/proc/${pid}/limits`, 'utf8')
    for (const limit of [/Max data size +\d+ /, /Max file size +0 /, /Max core file size +0 /])
      assert.match(limits, limit)
  })

  it('a source that is larger than declared is not read to its end', async () => {
    const refusal = { status: 400, message: /more than 33554432 bytes/ }
    await assert.rejects(open()(Buffer.alloc(33 * MiB), 'img-width=10', { size: 10 }), refusal)
    await assert.rejects(open()(small, 'img-width=10', { size: 33 * MiB }), refusal)
  })

  it('requests for one image share a conversion, which continues when a reader leaves', async () => {
    const convert = open()
    let reads = 0
    const onRead = () => {
      reads += 1
    }
    const leaving = new AbortController()
    const first = convert(large, 'img-width=100', { cid: 'shared', onRead, gone: leaving.signal })
    const others = [1, 2, 3].map(() => convert(large, 'img-width=100', { cid: 'shared', onRead }))
    leaving.abort()
    await assert.rejects(first)
    const [one, ...rest] = await Promise.all(others)
    assert.ok(rest.every((image) => image === one))
    assert.equal(reads, 1)
  })

  it('an image whose readers have all left before its turn is not converted', async () => {
    const convert = open()
    const running = convert(large, 'img-width=2000')
    const leaving = new AbortController()
    const waiting = convert(small, 'img-width=10', {
      gone: leaving.signal,
      onRead: () => assert.fail('it was read'),
    })
    leaving.abort()
    await assert.rejects(waiting)
    await running
    await convert(small, 'img-width=12')
  })

  it('the workspace with the fewest images in progress is next', async () => {
    const convert = open({ processes: 2 })
    const order: string[] = []
    const ask = (name: string, workspaceId: string, width: number) =>
      convert(small, `img-width=${width}`, { workspaceId, onRead: () => order.push(name) })
    const slow = [1, 2].map((width) => convert(large, `img-width=${2000 + width}`))
    await Promise.all([
      ...slow,
      ask('a1', 'a', 10),
      ask('a2', 'a', 11),
      ask('b1', 'b', 12),
      ask('b2', 'b', 13),
    ])
    assert.equal(order[0], 'b1')
    assert.ok(order.indexOf('a1') < order.indexOf('a2'), `${order}`)
  })

  it('an image whose turn does not come in time returns 503 and may be requested again', async (t) => {
    const before = await childrenOf(process.pid)
    const convert = open()
    await hang(convert, before)
    const restore = shorten(t)
    const running = convert(small, 'img-width=20').catch((error) => error)
    const waiting = [21, 22].map((width) => convert(small, `img-width=${width}`).catch((error) => error))
    const refused = await Promise.all(waiting)
    assert.ok(
      refused.some(
        ({ status, message }) => status === 503 && message === 'Too many images are being converted',
      ),
      `${refused}`,
    )
    await running
    restore()
    assert.ok((await convert(small, 'img-width=10')).length > 0)
  })

  it('images on their way to slow clients are limited per workspace and in total', () => {
    const images = new Images({ processes: 1, seconds: 1, maxPixels: PIXELS }, cache, log)
    const refusal = { status: 503, message: 'Too many images are being sent' }
    const releases = ['a', 'a', 'b'].map((workspaceId) => images.hold(workspaceId, 48 * MiB))
    assert.throws(() => images.hold('a', 1), refusal)
    images.hold('c', 48 * MiB)
    assert.throws(() => images.hold('d', 1), refusal)
    releases[0]?.()
    images.hold('a', 48 * MiB)
  })

  it('damaged images end as an image or an error, in one process', async () => {
    const before = await childrenOf(process.pid)
    const convert = open()
    const image = noise(60)
    const sources = [
      await image.clone().png().toBuffer(),
      await image
        .clone()
        .jpeg({ progressive: true })
        .withExif({ IFD0: { Copyright: 'Ada' } })
        .toBuffer(),
      await image.clone().webp().toBuffer(),
      await image.clone().gif().toBuffer(),
    ]
    await convert(small, 'img-width=10')
    const started = await newChildren(before)
    let random = 1
    const next = (below: number) => {
      random = (random * 48_271) % 2_147_483_647
      return random % below
    }
    for (let n = 0; n < 200; n++) {
      const damaged = Buffer.from(sources[n % sources.length] as Buffer)
      for (let flips = 1 + next(8); flips > 0; flips--)
        damaged[next(n % 2 ? 100 : damaged.length)] = next(256)
      await convert(damaged, 'img-width=20&img-format=webp').catch(({ status }) => assert.equal(status, 400))
    }
    assert.deepEqual(await newChildren(before), started)
  })
})
