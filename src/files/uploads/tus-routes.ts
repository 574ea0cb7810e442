import { z } from 'zod'
import { type Route, route } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import type { ResumableUploads } from './tus-uploads.ts'

const TAG = 'Uploads'
/** The last segment but one is the id of the file, where the Go CLI looks for it. */
const PATH = '/v3/files/tus/:id/:token'
const params = z.object({
  id: pathId,
  token: z.string().describe('What `Location` has at its end: whoever knows it may send bytes.'),
})
const BUSY = 'A request that finds the upload busy for 50 seconds is answered 423, and may be repeated.'

/** Resumable uploads, beyond their creation by `POST /v3/files`. */
export function resumableRoutes(uploads: ResumableUploads): Route[] {
  return [
    route({
      method: 'patch',
      path: PATH,
      overridden: true,
      id: 'appendToUpload',
      tag: TAG,
      summary: 'Send bytes of a resumable upload',
      description: `tus 1.0.0. The answer to the last bytes comes once the file is there, and has its CID in \`upload-cid\`. A client that misses that answer repeats its request, or asks with HEAD. ${BUSY}`,
      scope: null,
      origins: 'any',
      params,
      stream: { mediaType: 'application/offset+octet-stream', schema: z.file() },
      success: { status: 204, description: 'The bytes are here; `Upload-Offset` says how many.' },
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
      tag: TAG,
      summary: 'Ask how far a resumable upload is',
      description: `tus 1.0.0. \`Upload-Offset\` is where to go on. Where all bytes have arrived, the answer waits for the file, and has its CID in \`upload-cid\`. ${BUSY}`,
      scope: null,
      origins: 'any',
      params,
      success: { status: 200, description: 'How many bytes have arrived, of how many.' },
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
      tag: TAG,
      summary: 'Give a resumable upload up',
      description: 'tus 1.0.0.',
      scope: null,
      origins: 'any',
      params,
      success: { status: 204, description: 'Its bytes are gone.' },
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
      tag: TAG,
      summary: 'Ask what resumable uploads can do',
      description: 'tus 1.0.0, and what a browser asks before a page of another origin may upload.',
      scope: null,
      origins: 'any',
      success: { status: 204, description: '`Tus-Version`, `Tus-Extension`, and the headers of CORS.' },
      // An alias has parameters, which may not decode.
      errors: [400],
      async handle({ req, res }) {
        await uploads.options(req, res)
        return undefined
      },
    }),
  ]
}
