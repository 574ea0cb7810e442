/**
 * Converted images: an image with several concurrent requests is converted once, and an image that kills its process is
 * not tried again for a while.
 */
import { createHash } from 'node:crypto'
import { Counter } from 'prom-client'
import { ApiError, badRequest, unavailable } from '../../../errors.ts'
import type { FolderCache } from '../../../lib/folder-cache.ts'
import { readWhole } from '../../../lib/read.ts'
import { orAborted } from '../../../lib/signals.ts'
import type { Logger } from '../../../log.ts'
import type { ImageOptions } from './options.ts'
import { ConversionDied, type ImageLimits, ImageProcesses } from './processes.ts'

/** Largest source. */
const MAX_BYTES = 33_554_432
/** Maximum bytes of images on their way to clients, which may be slow on purpose: in total, and per workspace. */
const HELD_BYTES = { all: 201_326_592, workspace: 100_663_296 }
/** How long an image that has killed its process is rejected. */
const REFUSED_S = 60

const conversions = new Counter({
  name: 'berth_image_conversions_total',
  help: 'Conversions of images: `converted`, `refused` for what the image or the options are, `failed`, or `from_cache`.',
  labelNames: ['outcome'],
})
for (const outcome of ['converted', 'refused', 'failed', 'from_cache']) conversions.inc({ outcome }, 0)

export interface ImageSource {
  cid: string
  /** Size in bytes, as declared by its root node. */
  size: number
  workspaceId: string
  /** Whether others may find the image in the cache. */
  isPublic: boolean
  read(signal: AbortSignal): AsyncIterable<Uint8Array>
}

interface UnderWay {
  image: Promise<Uint8Array>
  readers: number
  abandoned: AbortController
}

export class Images {
  /** Whether image conversion is enabled. */
  readonly isOn: boolean
  readonly #processes: ImageProcesses
  readonly #cache: FolderCache
  readonly #log: Logger
  readonly #underWay = new Map<string, UnderWay>()
  /** CIDs of sources that have killed their process, and keys of images that took too long. */
  readonly #refused = new Set<string>()
  /** Bytes being sent, by workspace. */
  readonly #held = new Map<string, number>()

  constructor(limits: ImageLimits, cache: FolderCache, log: Logger) {
    this.isOn = limits.processes > 0
    this.#processes = new ImageProcesses(limits, log)
    this.#cache = cache
    this.#log = log
  }

  /**
   * The image, converted according to the options.
   * @param gone fires when the client has disconnected.
   * @throws ApiError 400 if it is not an image, or exceeds a limit; 503 while too many wait, and if it takes too long
   *   or kills its process; errors of reading.
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
   * Counts an image that is being sent to a client.
   * @returns a function that ends the count.
   * @throws ApiError 503 while too many are being sent.
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
    // A request that arrives after the conversion was abandoned starts a new one.
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
    const found = source.isPublic ? await this.#cache.read(fileOf(key)) : undefined
    if (found) {
      conversions.inc({ outcome: 'from_cache' })
      return found
    }
    try {
      const image = await this.#make(key, source, options, gone)
      conversions.inc({ outcome: 'converted' })
      if (source.isPublic) void this.#cache.write(fileOf(key), image)
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

/** The name of an image in the cache. */
const fileOf = (key: string): string => createHash('sha256').update(key).digest('hex')

/** The entity tag of an image, derived from the source and the options. */
export function tagOf(cid: string, options: ImageOptions): string {
  const hash = createHash('sha256').update(JSON.stringify(options)).digest('base64url')
  return `"${cid}.img-${hash.slice(0, 22)}"`
}

const NOT_CONVERTED = 'img-…: the file cannot be converted'

const failed = (message: string, cause?: unknown) =>
  new ApiError(503, 'image_failed', message, { cause, headers: { 'retry-after': `${REFUSED_S}` } })

/** The root node may declare another size than the file's. */
const tooLarge = () => badRequest(`${NOT_CONVERTED}: it has more than ${MAX_BYTES} bytes`)
