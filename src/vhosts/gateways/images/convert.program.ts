/**
 * Converts images, one at a time, for the process that started it. Damage by a hostile image to libvips ends here: the
 * program has limits on memory and time, and is replaced when it dies.
 */
import readExif from 'exif-reader'
import sharp from 'sharp'
import { planImage } from './geometry.ts'
import type { ImageOptions } from './options.ts'
import { refusalOf } from './refusal.ts'

/** The request to the process. */
export interface ConversionTask {
  bytes: Uint8Array
  options: ImageOptions
  maxPixels: number
}

/** The image, or why there is none, as a message for the client. */
export type Conversion = { bytes: Uint8Array } | { refused: string }

/** The response of the process. */
export interface ConversionAnswer {
  conversion: Conversion
  /** The process has used much memory, which it does not release, and must be replaced. */
  isSpent: boolean
}

/** Pixels of the result, all frames together. */
const MAX_OUTPUT_PIXELS = 16_777_216
const MAX_OUTPUT_BYTES = 16_777_216
const QUALITY = 85
/** Maximum memory of a process that is reused, in KiB. */
const GOES_ON_KIB = 262_144
const WHITE = { r: 255, g: 255, b: 255 }

// Processes are used instead of threads; nothing from one image is kept for the next.
sharp.concurrency(1)
sharp.cache(false)
// Blocks all other formats that libvips can read, including SVG and whatever it links to.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: ['VipsForeignLoadJpeg', 'VipsForeignLoadPng', 'VipsForeignLoadWebp', 'VipsForeignLoadNsgif'],
})

process.on('message', async (task: ConversionTask) => {
  const conversion = await convert(task).catch((error) => ({ refused: refusalOf(error, task.maxPixels) }))
  const isSpent = process.resourceUsage().maxRSS > GOES_ON_KIB
  process.send?.({ conversion, isSpent } satisfies ConversionAnswer)
})
// Node would wait for libvips's current work.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))

async function convert({ bytes, options, maxPixels }: ConversionTask): Promise<{ bytes: Uint8Array }> {
  const input = { animated: options.animation, limitInputPixels: maxPixels, failOn: 'error' } as const
  const found = await sharp(bytes, input).metadata()
  const format = options.format === 'own' ? (found.format as 'jpeg' | 'png' | 'webp' | 'gif') : options.format
  // The number of pages is the file's, regardless of how much of it is read.
  const pages = options.animation && (format === 'webp' || format === 'gif') ? (found.pages ?? 1) : 1
  const isAnimated = pages > 1
  // EXIF has a rotation for the whole image; pages have none.
  const upright = isAnimated ? found : found.autoOrient
  const source = { width: upright.width, height: found.pageHeight ?? upright.height }
  const { frame, scaled, crop } = planImage(source, options)
  if (Math.max(frame.width * frame.height, scaled.width * scaled.height) * pages > MAX_OUTPUT_PIXELS) {
    throw new Error(`the result would have more than ${MAX_OUTPUT_PIXELS} pixels: ask for a smaller one`)
  }
  let image = sharp(bytes, { ...input, animated: isAnimated })
  if (!isAnimated) image = image.autoOrient()
  if (crop && options.gravity === 'auto' && !isAnimated) {
    image = image.resize({ ...frame, fit: 'cover', position: sharp.strategy.attention })
  } else if (options.fit === 'pad') {
    image = image.resize({ ...frame, fit: 'contain', background: WHITE })
  } else {
    image = image.resize({ ...scaled, fit: 'fill' })
    if (crop) image = image.extract({ ...crop, ...frame })
  }
  if (options.sharpen > 0) image = image.sharpen({ sigma: 1, m1: options.sharpen, m2: 2 * options.sharpen })
  if (options.metadata === 'keep') image = image.keepExif().keepXmp()
  const copyright = options.metadata === 'copyright' ? copyrightOf(found.exif) : undefined
  if (copyright) image = image.withExif({ IFD0: { Copyright: copyright } })
  const quality = options.quality ?? QUALITY
  if (format === 'jpeg') image = image.flatten({ background: WHITE }).jpeg({ quality })
  else if (format === 'png') image = image.png({ palette: options.quality !== undefined, quality })
  else image = format === 'webp' ? image.webp({ quality }) : image.gif()
  const converted = await image.toBuffer()
  if (converted.length > MAX_OUTPUT_BYTES)
    throw new Error(`the result has more than ${MAX_OUTPUT_BYTES} bytes`)
  return { bytes: converted }
}

/** The copyright in an image's EXIF block. A damaged block has none. */
function copyrightOf(exif: Buffer | undefined): string | undefined {
  try {
    const value = exif && readExif(exif).Image?.Copyright
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
