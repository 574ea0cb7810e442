/** The size of a converted image, and the part of its source that it shows. */
import type { ImageOptions } from './options.ts'

export interface Size {
  width: number
  height: number
}

export interface Plan {
  /** The size of the resulting image. */
  frame: Size
  /**
   * The size to which the whole source is scaled: smaller than the frame with `pad`, larger with `cover` and `crop`.
   */
  scaled: Size
  /** Where in the scaled source the frame begins; null if all of it is shown. */
  crop: { left: number; top: number } | null
}

type Asked = Pick<ImageOptions, 'width' | 'height' | 'fit' | 'gravity'>

/** @param source its size after its EXIF rotation. */
export function planImage(source: Size, { width, height, fit, gravity }: Asked): Plan {
  const box = width !== undefined && height !== undefined ? { width, height } : undefined
  if (box && (fit === 'cover' || fit === 'crop')) return planCrop(source, box, fit, gravity)
  const mayGrow = fit !== 'scale-down' && fit !== 'crop'
  const ratios = [width && width / source.width, height && height / source.height, mayGrow ? undefined : 1]
  const known = ratios.filter((ratio) => ratio !== undefined)
  const scaled = scale(source, known.length > 0 ? Math.min(...known) : 1)
  return { frame: box && fit === 'pad' ? box : scaled, scaled, crop: null }
}

function planCrop(source: Size, box: Size, fit: 'cover' | 'crop', gravity: Asked['gravity']): Plan {
  const frame = {
    width: fit === 'cover' ? box.width : Math.min(box.width, source.width),
    height: fit === 'cover' ? box.height : Math.min(box.height, source.height),
  }
  const scaled = scale(source, Math.max(frame.width / source.width, frame.height / source.height))
  const { x, y } = gravity === 'auto' ? { x: 0.5, y: 0.5 } : gravity
  const crop = {
    left: Math.round((scaled.width - frame.width) * x),
    top: Math.round((scaled.height - frame.height) * y),
  }
  return { frame, scaled, crop }
}

const scale = ({ width, height }: Size, by: number): Size => ({
  width: Math.max(1, Math.round(width * by)),
  height: Math.max(1, Math.round(height * by)),
})
