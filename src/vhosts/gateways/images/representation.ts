import { parse } from 'node:path'
import type { Request, Response } from 'express'
import { ApiError } from '../../../errors.ts'
import { mimeTypeOf } from '../../../storage/dag/measure.ts'
import { contentHeaders, disposition } from '../file.ts'
import { hasFresh, inMemory, type Representation } from '../respond.ts'
import { type ImageSource, type Images, tagOf } from './images.ts'
import type { AskedImage } from './options.ts'

interface Exchange {
  images: Images
  url: URL
  req: Request
  res: Response
  /** Fires when the client has disconnected. */
  signal: AbortSignal
  /** Call it once the requested content is known. */
  found: () => void
}

/**
 * A file as the requested image; the unmodified file if it cannot be converted and the client wants that.
 * @param original the unmodified file.
 * @param name the file's.
 * @throws ApiError see {@link Images.convert}.
 */
export async function imageRepresentation(
  source: ImageSource,
  original: Representation,
  name: string,
  { options, orOriginal }: AskedImage,
  { images, url, req, res, signal, found }: Exchange,
): Promise<Representation> {
  const etag = tagOf(source.cid, options)
  // A client that already has the image gets a response without it.
  if (hasFresh(req, res, etag)) return { ...original, etag }
  found() // a conversion has its own limit
  try {
    const bytes = await images.convert(source, options, signal)
    const release = images.hold(source.workspaceId, bytes.length)
    if (res.closed) release()
    else res.once('close', release)
    const type = await mimeTypeOf(bytes)
    return {
      etag,
      headers: {
        ...contentHeaders(type),
        ...disposition(url, `${parse(name).name}.${type.slice('image/'.length)}`),
      },
      ...inMemory(bytes),
    }
  } catch (error) {
    if (!orOriginal || !(error instanceof ApiError)) throw error
    // A temporary failure must not be cached: nobody should store the original instead of the image.
    const isLasting = error.status === 400
    return isLasting
      ? original
      : { ...original, headers: { ...original.headers, 'Cache-Control': 'no-store' } }
  }
}
