/** Converted images: one that several ask for at a time is made once, and one that kills its process is left alone for a while. */
import { createHash } from 'node:crypto'
import { Counter } from 'prom-client'
import { ApiError, badRequest, unavailable } from '../../../errors.ts'
import { readWhole } from '../../../lib/read.ts'
import { orAborted } from '../../../lib/until-aborted.ts'
import type { Logger } from '../../../log.ts'
import type { ImageCache } from './cache.ts'
import type { ImageOptions } from './options.ts'
import { ConversionDied, type ImageLimits, ImageProcesses } from './processes.ts'

/** Largest source. */
const MAX_BYTES = 33_554_432
/** Most bytes of images on their way to clients, which may be slow on purpose: all together, and of one workspace. */
const HELD_BYTES = { all: 201_326_592, workspace: 100_663_296 }
/** For how long an image that has killed its process is refused. */
const REFUSED_S = 60

const conversions = new Counter({
  name: 'berth_image_conversions_total',
  help: 'Conversions of images: `converted`, `refused` for what the image or the options are, `failed`, or `from_cache`.',
  labelNames: ['outcome'],
})
for (const outcome of ['converted', 'refused', 'failed', 'from_cache']) conversions.inc({ outcome }, 0)

export interface ImageSource {
  cid: string
  /** In bytes, as its root node declares it. */
  size: number
  workspaceId: string
  /** Others may find the image in the cache. */
  isPublic: boolean
  read(signal: AbortSignal): AsyncIterable<Uint8Array>
}

interface UnderWay {
  image: Promise<Uint8Array>
  readers: number
  abandoned: AbortController
}

export class Images {
  /** Images are converted at all. */
  readonly isOn: boolean
  readonly #processes: ImageProcesses
  readonly #cache: ImageCache
  readonly #log: Logger
  readonly #underWay = new Map<string, UnderWay>()
  /** CIDs of sources that have killed their process, and keys of images that took too long. */
  readonly #refused = new Set<string>()
  /** Bytes on their way, by workspace. */
  readonly #held = new Map<string, number>()

  constructor(limits: ImageLimits, cache: ImageCache, log: Logger) {
    this.isOn = limits.processes > 0
    this.#processes = new ImageProcesses(limits, log)
    this.#cache = cache
    this.#log = log
  }

  /**
   * The image as the options want it.
   * @param gone fires when the client has gone.
   * @throws ApiError 400 for what is no image, or is over a bound; 503 while too many wait, and for one that takes too
   *   long or kills its process; what reading throws.
   */
  async convert(source: ImageSource, options: ImageOptions, gone: AbortSignal): Promise<Uint8Array> {
    const key = tagOf(source.cid, options)
    const underWay = this.#underWay.get(key) ?? this.#begin(key, source, options)
    underWay.readers += 1
    try {
      return await orAborted(underWay.image, gone)
    } finally {
      underWay.readers -= 1
      if (underWay.readers === 0) underWay.abandoned.abort()
    }
  }

  /**
   * Counts an image that is on its way to a client.
   * @returns ends that.
   * @throws ApiError 503 while too many are.
   */
  hold(workspaceId: string, bytes: number): () => void {
    const own = this.#held.get(workspaceId) ?? 0
    const all = this.#held.values().reduce((sum, held) => sum + held, 0)
    if (own + bytes > HELD_BYTES.workspace || all + bytes > HELD_BYTES.all) {
      throw unavailable('Too many images are being sent')
    }
    this.#held.set(workspaceId, own + bytes)
    return () => {
      const left = (this.#held.get(workspaceId) ?? 0) - bytes
      if (left > 0) this.#held.set(workspaceId, left)
      else this.#held.delete(workspaceId)
    }
  }

  close(): void {
    this.#processes.close()
  }

  #begin(key: string, source: ImageSource, options: ImageOptions): UnderWay {
    const abandoned = new AbortController()
    const image = this.#find(key, source, options, abandoned.signal)
    const underWay = { image, readers: 0, abandoned }
    this.#underWay.set(key, underWay)
    // A request that comes after the conversion was abandoned starts a new one.
    const forget = () => {
      if (this.#underWay.get(key) === underWay) this.#underWay.delete(key)
    }
    abandoned.signal.addEventListener('abort', forget, { once: true })
    image.then(forget, forget)
    return underWay
  }

  async #find(
    key: string,
    source: ImageSource,
    options: ImageOptions,
    gone: AbortSignal,
  ): Promise<Uint8Array> {
    const found = source.isPublic ? await this.#cache.read(key) : undefined
    if (found) {
      conversions.inc({ outcome: 'from_cache' })
      return found
    }
    try {
      const image = await this.#make(key, source, options, gone)
      conversions.inc({ outcome: 'converted' })
      if (source.isPublic) void this.#cache.write(key, image)
      return image
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status === 400
      conversions.inc({ outcome: isRefused ? 'refused' : 'failed' })
      throw error
    }
  }

  async #make(
    key: string,
    { cid, size, workspaceId, read }: ImageSource,
    options: ImageOptions,
    gone: AbortSignal,
  ): Promise<Uint8Array> {
    if (this.#refused.has(cid) || this.#refused.has(key))
      throw failed('This image could not be converted a moment ago')
    if (size > MAX_BYTES) throw tooLarge()
    try {
      const whole = (signal: AbortSignal) => readWhole(read(signal), MAX_BYTES, tooLarge)
      const answer = await this.#processes.convert(workspaceId, gone, whole, options)
      if ('bytes' in answer) return answer.bytes
      throw badRequest(`${NOT_CONVERTED}: ${answer.refused}`)
    } catch (error) {
      if (!(error instanceof ConversionDied)) throw error
      this.#log.warn({ err: error, cid }, 'an image was not converted')
      const refused = error.wasSlow ? key : cid
      this.#refused.add(refused)
      setTimeout(() => this.#refused.delete(refused), REFUSED_S * 1000).unref()
      throw failed(error.message, error)
    }
  }
}

/** The entity tag of an image: it stands for the source and the options. */
export function tagOf(cid: string, options: ImageOptions): string {
  const hash = createHash('sha256').update(JSON.stringify(options)).digest('base64url')
  return `"${cid}.img-${hash.slice(0, 22)}"`
}

const NOT_CONVERTED = 'img-…: the file cannot be converted'

const failed = (message: string, cause?: unknown) =>
  new ApiError(503, 'image_failed', message, { cause, headers: { 'retry-after': `${REFUSED_S}` } })

/** The root node may declare another size than the file has. */
const tooLarge = () => badRequest(`${NOT_CONVERTED}: it has more than ${MAX_BYTES} bytes`)
