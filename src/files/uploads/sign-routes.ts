/** Signed URLs: for uploads without a key, and links to private files; any holder can use them until they expire. */
import { z } from 'zod'
import { badRequest, forbidden, notFound } from '../../errors.ts'
import { beginEntry, noteCaller } from '../../http/audit.ts'
import { transferOf } from '../../http/request-transfer.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import { PINNED } from '../held-content.ts'
import type { FileServices } from '../services.ts'
import { uploadForm } from './fields.ts'
import { checkNetwork, networkOfKey, UPLOAD_SCOPES, type UploadServices } from './grant.ts'
import { receiveForm } from './receive.ts'
import { type LinkRequest, linkRequest, signedUrl, signRequest } from './sign-schema.ts'
import { apiBase, type SignedUploads } from './signed-uploads.ts'
import { isResumable, type ResumableUploads } from './tus-uploads.ts'
import { RESUMABLE_BEGUN, toUploadRecord, uploadRecord } from './upload-routes.ts'

interface SignRouteServices extends UploadServices {
  signedUploads: SignedUploads
  resumable: ResumableUploads
}

const route = routesOf('Uploads')
/** For a link to view a file: a viewer who may read the file requests another link after that. */
const LOOK_S = 900

export function signRoutes(services: SignRouteServices): Route[] {
  const { config, signedUploads, resumable, rateLimiter, bounds } = services
  return [
    route({
      method: 'post',
      path: '/v3/files/sign',
      id: 'signUpload',
      summary: 'Create a URL for uploads without a key',
      description:
        'Anyone with the URL can upload any number of times until it expires, within the plan’s rate limit, which counts all uploads through a key’s URLs together. The URL ends earlier if the key that signed it is revoked, or if its user leaves the workspace. With `url`, this is the same as `POST /v3/files/private/download_link`.',
      scope: UPLOAD_SCOPES,
      body: signRequest,
      success: { description: 'The signed URL.', body: signedUrl },
      errors: [404],
      async handle({ req, principal, body }) {
        const { url, method, date, expires } = body
        if (url === undefined) {
          checkNetwork({ network: networkOfKey(principal) }, body.network)
          const signed = await signedUploads.create(principal, body, apiBase(req, config.PUBLIC_URL))
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
      summary: 'Create a link to a private file',
      description: 'Anyone with the link can read the file until it expires.',
      scope: 'org:files:write',
      body: linkRequest,
      success: { description: 'The signed URL.', body: signedUrl },
      errors: [404],
      async handle({ principal, body }) {
        return { body: { data: (await signLink(services, principal.workspaceId, body)).href } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/files/private/:id/link',
      id: 'linkToFile',
      summary: 'Get a link to view a private file',
      description: `The link is at the oldest gateway of the workspace and valid for ${LOOK_S / 60} minutes. It only needs read permission; \`POST /v3/files/private/download_link\` creates longer-lived links to share.`,
      scope: 'org:files:read',
      params: z.object({ id: pathId }),
      success: { description: 'The signed URL.', body: signedUrl },
      errors: [404],
      async handle({ req, principal: { workspaceId }, params: { id } }) {
        const link = await linkToLook(services, { workspaceId, id }, new URL(apiBase(req, config.PUBLIC_URL)))
        return { headers: { 'cache-control': 'no-store' }, body: { data: link.href } }
      },
    }),
    route({
      method: 'post',
      path: '/v3/files/:network',
      id: 'uploadBySignedUrl',
      summary: 'Upload to a signed URL',
      description:
        'Send it to a URL from `POST /v3/files/sign`; no key is needed. The body is the same as for `POST /v3/files`; with `Upload-Length`, the request begins a resumable upload, as it does there. The upload cannot change what the URL fixes.',
      scope: null,
      origins: 'any',
      params: z.object({ network: pathId.describe('The id in the URL.') }),
      stream: { mediaType: 'multipart/form-data', schema: uploadForm },
      success: { description: 'The file.', body: z.object({ data: uploadRecord }) },
      otherSuccess: RESUMABLE_BEGUN,
      errors: [401, 403, 404, 408, 412, 413, 415, 503, 507],
      async handle({ req, res, params, signal }) {
        const url = new URL(`${apiBase(req, config.PUBLIC_URL)}${req.originalUrl}`)
        const caller = await signedUploads.resolve(url, params.network)
        // Counted separately from the key's own requests: strangers with a URL must not use those up.
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
          const received = await receiveForm(req, caller.grant, services, signal)
          return { body: { data: toUploadRecord(received) } }
        }
        const transfer = transferOf(req, res, (error) => res.locals.gone.abort(error))
        return bounds.run('uploads', { keyId, workspaceId }, upload, transfer)
      },
    }),
  ]
}

/**
 * A short-lived link to view a private file.
 * @param base the URL of this API: gateways use its scheme and port.
 * @throws ApiError 404 if there is no such file, or no gateway.
 */
async function linkToLook(
  { prisma, gateways, signer }: FileServices,
  { workspaceId, id }: { workspaceId: string; id: string },
  base: URL,
): Promise<URL> {
  const where = { id, workspaceId, network: 'private', ...PINNED }
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
 * Signs the URL of a private file on one of the workspace's gateways.
 * @throws ApiError 400 naming `url` if it is not such a URL, 404 if the gateway or the file is not the workspace's.
 */
async function signLink(
  { prisma, gateways, signer }: FileServices,
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
  const where = { workspaceId, network: 'private', cidV1: canonical, ...PINNED }
  const file = await prisma.file.findFirst({ where, select: { id: true } })
  if (!file) throw notFound('url: there is no such private file')
  // A link ends with its gateway: the name may later belong to someone else.
  return signer.sign(url, { algorithm: 'PINATA1', date, expires, method, subject: gateway.id })
}
