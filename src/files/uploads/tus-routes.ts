import { z } from 'zod'
import { type Route, routesOf } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import type { ResumableUploads } from './tus-uploads.ts'

const route = routesOf('Uploads')
/** The second-to-last segment is the id of the file, where the Go CLI looks for it. */
const PATH = '/v3/files/tus/:id/:token'
const params = z.object({
  id: pathId,
  token: z.string().describe('The token at the end of `Location`: anyone who knows it may send bytes.'),
})
const BUSY = 'A request that finds the upload busy for 50 seconds gets 423, and may be repeated.'

/** Routes of resumable uploads, except their creation by `POST /v3/files`. */
export function resumableRoutes(uploads: ResumableUploads): Route[] {
  return [
    route({
      method: 'patch',
      path: PATH,
      overridden: true,
      id: 'appendToUpload',
      summary: 'Send bytes of a resumable upload',
      description: `tus 1.0.0. The response to the last bytes is sent once the file exists, with its CID in \`upload-cid\`. A client that misses that response repeats its request, or sends HEAD. ${BUSY}`,
      scope: null,
      origins: 'any',
      params,
      stream: { mediaType: 'application/offset+octet-stream', schema: z.file() },
      success: { status: 204, description: 'The bytes are stored; `Upload-Offset` is their number.' },
      errors: [403, 404, 409, 410, 412, 413, 423, 503, 507],
      async handle({ req, res, params, signal }) {
        await uploads.append(req, res, params, signal)
        return undefined
      },
    }),
    route({
      method: 'head',
      path: PATH,
      overridden: true,
      id: 'describeUpload',
      summary: 'Get the progress of a resumable upload',
      description: `tus 1.0.0. Continue at \`Upload-Offset\`. If all bytes have arrived, the response waits for the file, and has its CID in \`upload-cid\`. ${BUSY}`,
      scope: null,
      origins: 'any',
      params,
      success: { description: 'How many bytes have arrived, and the total.' },
      errors: [403, 404, 410, 412, 413, 423, 503],
      async handle({ req, res, params, signal }) {
        await uploads.describe(req, res, params, signal)
        return undefined
      },
    }),
    route({
      method: 'delete',
      path: PATH,
      overridden: true,
      id: 'terminateUpload',
      summary: 'Cancel a resumable upload',
      description: 'tus 1.0.0.',
      scope: null,
      origins: 'any',
      params,
      success: { status: 204, description: 'Its bytes are deleted.' },
      errors: [403, 404, 409, 410, 412, 423, 503],
      async handle({ req, res, params, signal }) {
        await uploads.terminate(req, res, params, signal)
        return undefined
      },
    }),
    route({
      method: 'options',
      path: '/v3/files',
      aliases: ['/v3/files/:network', PATH],
      id: 'resumableUploadOptions',
      summary: 'Get the supported features of resumable uploads',
      description: 'tus 1.0.0. Also answers the CORS preflight for uploads from pages of other origins.',
      scope: null,
      origins: 'any',
      success: { status: 204, description: '`Tus-Version`, `Tus-Extension`, and the CORS headers.' },
      // An alias has parameters, which may fail to decode.
      errors: [400],
      async handle({ res }) {
        uploads.options(res)
        return undefined
      },
    }),
  ]
}
