import { parse } from 'node:path'
import type { Request, Response } from 'express'
import { ApiError } from '../../../errors.ts'
import { mimeTypeOf } from '../../../storage/measure.ts'
import { contentHeaders, disposition } from '../file.ts'
import { hasFresh, inMemory, type Representation } from '../respond.ts'
import { type ImageSource, type Images, tagOf } from './images.ts'
import type { AskedImage } from './options.ts'

interface Exchange {
  images: Images
  url: URL
  req: Request
  res: Response
  /** Fires when the client has gone. */
  signal: AbortSignal
  /** To be called when it is known what is asked for. */
  found: () => void
}

/**
 * A file as the image that the client asks for; as it is where it cannot be converted and the client wants that.
 * @param original the file as it is.
 * @param name of the file.
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
  // A client that has the image is answered without it.
  if (hasFresh(req, res, etag)) return { ...original, etag }
  found() // a conversion has a bound of its own
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
    // A failure that may pass must not be cached: nobody stores the original in place of the image.
    const isLasting = error.status === 400
    return isLasting
      ? original
      : { ...original, headers: { ...original.headers, 'Cache-Control': 'no-store' } }
  }
}
