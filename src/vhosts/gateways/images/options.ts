/** Image options in a gateway's URL (`img-width` and so on), as sent by the npm SDK. */
import { z } from 'zod'
import { badRequest } from '../../../errors.ts'
import { parseInput } from '../../../http/shapes.ts'

/** Maximum side of a requested image, in pixels. */
const MAX_SIDE = 8192

export interface ImageOptions {
  /** The size of the box for the image, in device pixels. */
  width: number | undefined
  height: number | undefined
  fit: 'scale-down' | 'contain' | 'cover' | 'crop' | 'pad'
  /** The point that a crop keeps, with coordinates from 0 to 1; `auto`: the most salient part. */
  gravity: 'auto' | { x: number; y: number }
  /** 1 to 100; undefined if the client does not specify it. */
  quality: number | undefined
  /** `own`: the source's format. */
  format: 'own' | 'jpeg' | 'png' | 'webp'
  animation: boolean
  /** 0 to 10. */
  sharpen: number
  metadata: 'keep' | 'copyright' | 'none'
}

export interface AskedImage {
  options: ImageOptions
  /** Whether the original is served if the image cannot be converted. */
  orOriginal: boolean
}

const PREFIX = 'img-'
const SIDES: Record<string, { x: number; y: number }> = {
  left: { x: 0, y: 0.5 },
  right: { x: 1, y: 0.5 },
  top: { x: 0.5, y: 0 },
  bottom: { x: 0.5, y: 1 },
}
const POINT = /^(0(?:\.\d{1,4})?|1(?:\.0{1,4})?)x(0(?:\.\d{1,4})?|1(?:\.0{1,4})?)$/

const whole = (min: number, max: number) => numberOf(/^\d{1,6}$/, 'a whole number', min, max)
const decimal = (min: number, max: number) => numberOf(/^\d{1,3}(\.\d{1,16})?$/, 'a number', min, max)
const numberOf = (form: RegExp, what: string, min: number, max: number) => {
  const message = `must be ${what} from ${min} to ${max}`
  return z
    .string()
    .regex(form, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message))
}
const oneOf = <const T extends string[]>(...values: T) =>
  z.enum(
    values,
    `must be ${values.slice(0, -1).join(', ')}${values.length > 1 ? ' or ' : ''}${values.at(-1)}`,
  )

const shape = z.object({
  'img-width': whole(1, MAX_SIDE).optional(),
  'img-height': whole(1, MAX_SIDE).optional(),
  'img-dpr': decimal(0.1, 10).default(1),
  // The SDK writes `scaleDown`, the documentation `scale-down`.
  'img-fit': oneOf('scale-down', 'scaleDown', 'contain', 'cover', 'crop', 'pad').default('scale-down'),
  'img-gravity': z
    .string()
    .transform(readGravity)
    .pipe(
      z.custom<ImageOptions['gravity']>(
        Boolean,
        'must be auto, left, right, top, bottom or a point as 0.5x0.33',
      ),
    )
    .default({ x: 0.5, y: 0.5 }),
  'img-quality': whole(1, 100).optional(),
  'img-format': oneOf('auto', 'webp', 'jpeg', 'png').optional(),
  'img-anim': oneOf('true', 'false').default('true'),
  'img-sharpen': decimal(0, 10).default(0),
  'img-onerror': oneOf('redirect').optional(),
  'img-metadata': oneOf('keep', 'copyright', 'none').default('copyright'),
})

/**
 * The image that a URL requests; undefined if it has no image option.
 * @param accept the `Accept` header: `img-format=auto` is WebP for clients that list it.
 * @throws ApiError 400 naming the option.
 */
export function askedImage({ searchParams }: URL, accept = ''): AskedImage | undefined {
  const given = Object.fromEntries([...searchParams].filter(([name]) => name.startsWith(PREFIX)))
  const names = Object.keys(given)
  if (names.length === 0) return undefined
  if (names.some((name) => !(name in shape.shape))) {
    throw badRequest(`${PREFIX}…: the image options are ${Object.keys(shape.shape).join(', ')}`)
  }
  const asked = parseInput(shape, given)
  const fit = asked['img-fit'] === 'scaleDown' ? 'scale-down' : asked['img-fit']
  const format = asked['img-format'] ?? 'own'
  const acceptsWebp = /\bimage\/webp\b/i.test(accept)
  return {
    options: {
      width: inDevicePixels('img-width', asked),
      height: inDevicePixels('img-height', asked),
      fit,
      gravity: asked['img-gravity'],
      quality: asked['img-quality'],
      format: format === 'auto' ? (acceptsWebp ? 'webp' : 'own') : format,
      animation: asked['img-anim'] === 'true',
      sharpen: asked['img-sharpen'],
      metadata: asked['img-metadata'],
    },
    orOriginal: asked['img-onerror'] === 'redirect',
  }
}

function inDevicePixels(name: 'img-width' | 'img-height', asked: z.infer<typeof shape>): number | undefined {
  const side = asked[name]
  if (side === undefined) return undefined
  const pixels = Math.max(1, Math.round(side * asked['img-dpr']))
  if (pixels > MAX_SIDE) throw badRequest(`${name}: must be at most ${MAX_SIDE} with img-dpr`)
  return pixels
}

function readGravity(value: string): ImageOptions['gravity'] | undefined {
  if (value === 'auto') return value
  const [, x, y] = POINT.exec(value) ?? []
  return x === undefined ? SIDES[value] : { x: Number(x), y: Number(y) }
}
