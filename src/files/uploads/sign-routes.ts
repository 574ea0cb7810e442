import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import type { RateLimiter } from '../../http/rate-limit.ts'
import { type Route, route } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import { uploadForm } from './fields.ts'
import type { UploadServices } from './grant.ts'
import { receiveUpload } from './receive.ts'
import { toUploadRecord, uploadRecord } from './record.ts'
import { RESUMABLE_BEGUN } from './routes.ts'
import { type LinkServices, signLink } from './sign-link.ts'
import { linkRequest, signedUrl, signRequest } from './sign-schema.ts'
import { apiBase } from './signed-base.ts'
import type { SignedUploads } from './signed-uploads.ts'
import { setHeaders } from './tus-http.ts'
import { isResumable, type ResumableUploads } from './tus-uploads.ts'

export interface SignRouteServices extends UploadServices, LinkServices {
  signedUploads: SignedUploads
  resumable: ResumableUploads
  rateLimiter: RateLimiter
  publicUrl: string | undefined
}

const TAG = 'Uploads'

export function signRoutes(services: SignRouteServices): Route[] {
  const { signedUploads, resumable, rateLimiter, publicUrl } = services
  return [
    route({
      method: 'post',
      path: '/v3/files/sign',
      id: 'signUpload',
      tag: TAG,
      summary: 'Make a URL for uploads without a key',
      description:
        'Whoever has the URL uploads by it as often as they like until it expires, within the rate limit of the plan, which counts all uploads by the URLs of a key. It ends earlier when the key that signed it is revoked, or its user leaves the workspace. With `url`, the same as `POST /v3/files/private/download_link`.',
      scope: 'org:files:write',
      body: signRequest,
      success: { status: 200, description: 'The signed URL.', body: signedUrl },
      errors: [404],
      async handle({ req, principal, body }) {
        const { url, method, date, expires } = body
        if (url === undefined) {
          const signed = await signedUploads.create(principal, body, apiBase(req, publicUrl))
          return { body: { data: signed.href } }
        }
        if (!method) throw badRequest('method: must be GET')
        const signed = await signLink(services, principal.workspaceId, { url, method, date, expires })
        return { body: { data: signed.href } }
      },
    }),
    route({
      method: 'post',
      path: '/v3/files/private/download_link',
      id: 'signDownload',
      tag: TAG,
      summary: 'Make a link to a private file',
      description: 'Whoever has the link reads the file by it until it expires.',
      scope: 'org:files:write',
      body: linkRequest,
      success: { status: 200, description: 'The signed URL.', body: signedUrl },
      errors: [404],
      async handle({ principal, body }) {
        return { body: { data: (await signLink(services, principal.workspaceId, body)).href } }
      },
    }),
    route({
      method: 'post',
      path: '/v3/files/:id',
      id: 'uploadBySignedUrl',
      tag: TAG,
      summary: 'Upload by a signed URL',
      description:
        'The address is what `POST /v3/files/sign` gave out; no key is needed. The body is that of `POST /v3/files`; with `Upload-Length`, it begins a resumable upload as there. What the URL fixes, the upload cannot change.',
      scope: null,
      params: z.object({ id: pathId }),
      stream: { mediaType: 'multipart/form-data', shape: uploadForm },
      success: { status: 200, description: 'The file.', body: z.object({ data: uploadRecord }) },
      otherSuccess: RESUMABLE_BEGUN,
      errors: [401, 403, 404, 408, 412, 413, 415, 429, 503],
      async handle({ req, res, params, signal }) {
        setHeaders(res)
        const url = new URL(`${apiBase(req, publicUrl)}${req.originalUrl}`)
        const caller = await signedUploads.resolve(url, params.id)
        // Counted beside the key's own requests: strangers who have a URL must not use those up.
        const { plan } = caller.grant.uploader
        await rateLimiter.consume({ keyId: `signed by ${caller.keyId}`, plan }, res)
        if (isResumable(req)) {
          await resumable.create(req, res, caller)
          return undefined
        }
        const received = await receiveUpload(req, caller.grant, services, signal)
        return { body: { data: toUploadRecord(received) } }
      },
    }),
  ]
}
