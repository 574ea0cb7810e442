/** Signed URLs: for uploads without a key, and links to private files; whoever has one uses it until it expires. */
import { z } from 'zod'
import type { PrismaClient } from '../../db/prisma.ts'
import { badRequest, forbidden, notFound } from '../../errors.ts'
import { beginEntry, noteCaller } from '../../http/audit.ts'
import type { RateLimiter } from '../../http/rate-limit.ts'
import { transferOf } from '../../http/request-transfer.ts'
import { type Route, route } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import type { GatewayService } from '../gateways/gateways.ts'
import type { UrlSigner } from '../signed-url.ts'
import { uploadForm } from './fields.ts'
import { checkNetwork, networkOfKey, UPLOAD_SCOPES, type UploadServices } from './grant.ts'
import { receiveUpload } from './receive.ts'
import { type LinkRequest, linkRequest, signedUrl, signRequest } from './sign-schema.ts'
import { apiBase, type SignedUploads } from './signed-uploads.ts'
import { isResumable, type ResumableUploads } from './tus-uploads.ts'
import { RESUMABLE_BEGUN, toUploadRecord, uploadRecord } from './upload-routes.ts'

export interface SignRouteServices extends UploadServices, LinkServices {
  signedUploads: SignedUploads
  resumable: ResumableUploads
  rateLimiter: RateLimiter
  publicUrl: string | undefined
}

const TAG = 'Uploads'
/** A link for who looks at a file: whoever may read it asks for another one. */
const LOOK_S = 900

export function signRoutes(services: SignRouteServices): Route[] {
  const { signedUploads, resumable, rateLimiter, bounds, publicUrl } = services
  return [
    route({
      method: 'post',
      path: '/v3/files/sign',
      id: 'signUpload',
      tag: TAG,
      summary: 'Make a URL for uploads without a key',
      description:
        'Whoever has the URL uploads by it as often as they like until it expires, within the rate limit of the plan, which counts all uploads by the URLs of a key. It ends earlier when the key that signed it is revoked, or its user leaves the workspace. With `url`, the same as `POST /v3/files/private/download_link`.',
      scope: UPLOAD_SCOPES,
      body: signRequest,
      success: { status: 200, description: 'The signed URL.', body: signedUrl },
      errors: [404],
      async handle({ req, principal, body }) {
        const { url, method, date, expires } = body
        if (url === undefined) {
          checkNetwork({ network: networkOfKey(principal) }, body.network)
          const signed = await signedUploads.create(principal, body, apiBase(req, publicUrl))
          return { body: { data: signed.href } }
        }
        if (networkOfKey(principal)) throw forbidden('Missing scope: org:files:write', 'missing_scope')
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
      method: 'get',
      path: '/v0/files/private/:id/link',
      id: 'linkToFile',
      tag: TAG,
      summary: 'Get a link to a private file, to look at it',
      description: `At the oldest gateway of the workspace, good for ${LOOK_S / 60} minutes. For who may read alone; \`POST /v3/files/private/download_link\` makes links that are good for longer, to be handed on.`,
      scope: 'org:files:read',
      params: z.object({ id: pathId }),
      success: { status: 200, description: 'The signed URL.', body: signedUrl },
      errors: [404],
      async handle({ req, principal: { workspaceId }, params: { id } }) {
        const link = await linkToLook(services, { workspaceId, id }, new URL(apiBase(req, publicUrl)))
        return { headers: { 'cache-control': 'no-store' }, body: { data: link.href } }
      },
    }),
    route({
      method: 'post',
      path: '/v3/files/:network',
      id: 'uploadBySignedUrl',
      tag: TAG,
      summary: 'Upload by a signed URL',
      description:
        'The address is what `POST /v3/files/sign` gave out; no key is needed. The body is that of `POST /v3/files`; with `Upload-Length`, it begins a resumable upload as there. What the URL fixes, the upload cannot change.',
      scope: null,
      origins: 'any',
      params: z.object({ network: pathId.describe('The id in the URL.') }),
      stream: { mediaType: 'multipart/form-data', schema: uploadForm },
      success: { status: 200, description: 'The file.', body: z.object({ data: uploadRecord }) },
      otherSuccess: RESUMABLE_BEGUN,
      errors: [401, 403, 404, 408, 412, 413, 415, 503, 507],
      async handle({ req, res, params, signal }) {
        const url = new URL(`${apiBase(req, publicUrl)}${req.originalUrl}`)
        const caller = await signedUploads.resolve(url, params.network)
        // Counted beside the key's own requests: strangers who have a URL must not use those up.
        const { workspaceId, userId, plan } = caller.grant.uploader
        noteCaller(res, { workspaceId, userId, keyId: caller.keyId })
        const keyId = `signed by ${caller.keyId}`
        await rateLimiter.consume({ keyId, workspaceId, plan }, res)
        await beginEntry(res)
        const upload = async () => {
          if (isResumable(req)) {
            await resumable.create(req, res, caller, signal)
            return undefined
          }
          const received = await receiveUpload(req, caller.grant, services, signal)
          return { body: { data: toUploadRecord(received) } }
        }
        const transfer = transferOf(req, res, (error) => res.locals.gone.abort(error))
        return bounds.run('uploads', { keyId, workspaceId }, upload, transfer)
      },
    }),
  ]
}

interface LinkServices {
  prisma: PrismaClient
  gateways: GatewayService
  signer: UrlSigner
}

/**
 * A link to a private file that is good for a look.
 * @param base the address of this API: gateways are at its scheme and port.
 * @throws ApiError 404 where there is no such file, or no gateway.
 */
async function linkToLook(
  { prisma, gateways, signer }: LinkServices,
  { workspaceId, id }: { workspaceId: string; id: string },
  base: URL,
): Promise<URL> {
  const where = { id, workspaceId, network: 'private', status: 'pinned', removedAt: null }
  const [file, gateway] = await Promise.all([
    prisma.file.findFirst({ where, select: { cidV1: true } }),
    prisma.gateway.findFirst({ where: { workspaceId }, orderBy: { id: 'asc' } }),
  ])
  if (!file) throw notFound('There is no such file')
  if (!gateway) throw notFound('The workspace has no gateway: create one')
  const port = base.port && `:${base.port}`
  const url = new URL(`${base.protocol}//${gateways.hostOf(gateway.domain)}${port}/files/${file.cidV1}`)
  const date = Math.floor(Date.now() / 1000)
  return signer.sign(url, { algorithm: 'PINATA1', date, expires: LOOK_S, method: 'GET', subject: gateway.id })
}

/**
 * Signs the address of a private file on one of the workspace's gateways.
 * @throws ApiError 400 naming `url` for what is no such address, 404 where the gateway or the file is not the
 *   workspace's.
 */
async function signLink(
  { prisma, gateways, signer }: LinkServices,
  workspaceId: string,
  { url: text, date, expires, method }: LinkRequest,
): Promise<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const [, cid] = /^\/files\/([^/]+)(?:\/|$)/.exec(url?.pathname ?? '') ?? []
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || cid === undefined) {
    throw badRequest('url: must be https://<gateway>/files/<cid>')
  }
  const canonical = canonicalCid(parseCid(cid, 'url'))
  const gateway = await gateways.findByHost(url.host)
  if (gateway?.workspaceId !== workspaceId) throw notFound('url: not a gateway of this workspace')
  const where = { workspaceId, network: 'private', cidV1: canonical, status: 'pinned', removedAt: null }
  const file = await prisma.file.findFirst({ where, select: { id: true } })
  if (!file) throw notFound('url: there is no such private file')
  // A link ends with its gateway: the name may be somebody else's later.
  return signer.sign(url, { algorithm: 'PINATA1', date, expires, method, subject: gateway.id })
}
