import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import { userId, withExample } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { network } from '../../http/shapes.ts'
import { legacyForm, olderMetadata, olderOptions, readLegacyField, uploadForm } from './fields.ts'
import {
  checkNetwork,
  networkOfKey,
  type ReceivedUpload,
  UPLOAD_SCOPES,
  type UploadServices,
} from './grant.ts'
import { fileRecord } from './keep.ts'
import { checkPath } from './paths.ts'
import { receiveForm, receiveWhole } from './receive.ts'
import { isResumable, type ResumableUploads } from './tus-uploads.ts'

const route = routesOf('Uploads')
/** The response to a request that begins a resumable upload, on routes that otherwise take a form. */
export const RESUMABLE_BEGUN = { status: 201, description: 'Send the bytes to `Location`.' }
const MULTIPART = 'multipart/form-data'

export function uploadRoutes(services: UploadServices & { resumable: ResumableUploads }): Route[] {
  return [
    route({
      method: 'post',
      path: '/v3/files',
      id: 'uploadFile',
      summary: 'Upload a file, a folder or a CAR',
      description:
        'Responds once the content is pinned. If a form has `network` before `file`, it must also have `car` and `cid_version` before it, and is written directly to the IPFS node. The MIME type is detected from the bytes. If they are only recognised as text or XML, or not at all, the Content-Type of the part is used. The request itself imports a CAR (paid plans, public network), and its response is the outcome.\n\nWith `Upload-Length` and `Upload-Metadata` instead of a form, the request begins a resumable upload (tus 1.0.0). The response is 201; send the bytes to `Location`. The metadata has the fields of the form, `filename`, `filetype` and `folder`. With `folder` set to `true`, the bytes are a CAR of a folder, which replaces the several files of a form and is allowed wherever those are.',
      scope: UPLOAD_SCOPES,
      bound: 'uploads',
      stream: { mediaType: MULTIPART, schema: uploadForm },
      success: { description: 'The file.', body: z.object({ data: uploadRecord }) },
      otherSuccess: RESUMABLE_BEGUN,
      errors: [404, 412, 507],
      async handle({ req, res, principal, signal }) {
        const grant = { uploader: principal, network: networkOfKey(principal) }
        if (isResumable(req)) {
          const caller = { keyId: principal.keyId, grant }
          await services.resumable.create(req, res, caller, signal)
          return undefined
        }
        const received = await receiveForm(req, grant, services, signal)
        return { body: { data: toUploadRecord(received) } }
      },
    }),
    route({
      method: 'post',
      path: '/pinning/pinFileToIPFS',
      aliases: ['/v3/pinning/pinFileToIPFS'],
      id: 'pinFileToIPFS',
      summary: 'Upload a file or a folder (older API)',
      description:
        'Uploads to the public network, unless the URL or the form names the private one, or the key is for private uploads ' +
        '(`org:private_files:write`). The `pinata` SDK sends folders here, without the network that its caller chose.',
      scope: UPLOAD_SCOPES,
      bound: 'uploads',
      query: z.object({
        network: network.optional().describe('Default: the network in the form, or else `public`.'),
      }),
      stream: { mediaType: MULTIPART, schema: legacyForm },
      success: { description: 'The file.', body: legacyRecord },
      errors: [404, 507],
      async handle({ req, principal, query, signal }) {
        const ofKey = networkOfKey(principal)
        checkNetwork({ network: ofKey }, query.network)
        const grant = {
          uploader: principal,
          network: ofKey ?? query.network,
          defaultNetwork: 'public',
        } as const
        const received = await receiveForm(req, grant, services, signal, readLegacyField)
        return { body: toLegacyRecord(received) }
      },
    }),
    route({
      method: 'post',
      path: '/pinning/pinJSONToIPFS',
      aliases: ['/v3/pinning/pinJSONToIPFS'],
      id: 'pinJSONToIPFS',
      summary: 'Upload JSON as a file (older API)',
      description:
        'Uploads to the public network. The body is `{"pinataContent": …, "pinataMetadata": …, "pinataOptions": …}`, or the content itself: an object without these fields. The file contains the JSON without whitespace.',
      scope: 'org:files:write',
      bound: 'uploads',
      body: jsonUpload,
      success: { description: 'The file.', body: legacyRecord },
      errors: [404, 507],
      async handle({ req, principal, body, signal }) {
        const { pinataMetadata, pinataOptions } = body
        const isWrapped = JSON_FIELDS.some((name) => Object.hasOwn(body, name))
        const content = isWrapped ? req.body.pinataContent : req.body
        if (content === undefined) throw badRequest('pinataContent: is required')
        const name = pinataMetadata?.name || null
        const isFolder = pinataOptions?.wrapWithDirectory === true
        if (isFolder && name) checkPath(name, 'pinataMetadata.name')
        const received = await receiveWhole(
          {
            content: Buffer.from(JSON.stringify(content)),
            type: 'application/json',
            cidVersion: pinataOptions?.cidVersion ?? 1,
            wrappedAs: isFolder ? name || 'file.json' : undefined,
            details: {
              network: 'public',
              name,
              keyvalues: pinataMetadata?.keyvalues ?? {},
              groupId: pinataOptions?.groupId ?? null,
              expiresAt: null,
            },
          },
          { uploader: principal },
          services,
          signal,
        )
        return { body: toLegacyRecord(received) }
      },
    }),
  ]
}

const { id, name, cid, size, created_at, number_of_files, mime_type, group_id, keyvalues } = fileRecord.shape
/** A file record with the older API's field names. */
const legacyRecord = z.object({
  ID: id,
  Name: name,
  IpfsHash: cid,
  PinSize: size,
  Timestamp: created_at,
  NumberOfFiles: number_of_files,
  MimeType: mime_type,
  GroupId: group_id,
  Keyvalues: keyvalues,
  isDuplicate: z.boolean(),
})

const toLegacyRecord = ({ file, isDuplicate }: ReceivedUpload): z.output<typeof legacyRecord> => ({
  ID: file.id,
  Name: file.name,
  IpfsHash: file.cid,
  PinSize: file.size,
  Timestamp: file.created_at,
  NumberOfFiles: file.number_of_files,
  MimeType: file.mime_type,
  GroupId: file.group_id,
  Keyvalues: file.keyvalues,
  isDuplicate,
})

const jsonUpload = z.looseObject({
  pinataContent: withExample(z.unknown().optional(), { name: 'Token 1' }).describe('Any JSON.'),
  pinataMetadata: olderMetadata.nullish(),
  pinataOptions: olderOptions.nullish(),
})
const JSON_FIELDS = Object.keys(jsonUpload.shape)

/** A file record, as returned by an upload. */
export const uploadRecord = fileRecord.extend({
  vectorized: z.literal(false),
  network,
  is_duplicate: z
    .boolean()
    .describe(
      'Whether the workspace already had this content, until `expires_at` or longer. If so, this is the existing file, of which only `mime_type` changes if this upload declares a better type.',
    ),
  user_id: userId,
})

export const toUploadRecord = ({ file, isDuplicate, network, userId }: ReceivedUpload) => ({
  ...file,
  vectorized: false as const,
  network,
  is_duplicate: isDuplicate,
  user_id: userId,
})
