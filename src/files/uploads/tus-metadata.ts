/** The description of a resumable upload: the Upload-Metadata header, and the signed URL that it came through. */
import { badRequest } from '../../errors.ts'
import { type Choices, readField, readFlag } from './fields.ts'
import { checkCar, checkNetwork, type UploadGrant } from './grant.ts'
import type { UploadDetails } from './tus-rows.ts'

export const CID_VERSION_OPTION = 'X-Upload-Option-Cid-Version'

/**
 * Parses the description of an upload. It has the same fields as the form of `POST /v3/files`. `filename` and
 * `filetype` replace the properties of a form part, and `folder` replaces several files. Values that the URL fixes take
 * precedence.
 * @param header Upload-Metadata, unparsed.
 * @param cidVersion the query's {@link CID_VERSION_OPTION}, which the npm SDK also sends.
 * @throws ApiError 400 naming the field, 403 if the plan does not include CARs.
 */
export function readDetails(header: string, cidVersion: unknown, grant: UploadGrant): UploadDetails {
  const { filename, filetype, folder: isFolder = 'false', ...fields } = readMetadata(header)
  if (filetype?.includes('\0')) throw badRequest('filetype: must not contain NUL')
  const choices: Choices = {}
  for (const [name, value] of Object.entries(fields)) Object.assign(choices, readField(name, value))
  if (cidVersion !== undefined) Object.assign(choices, readField('cid_version', String(cidVersion)))
  checkNetwork(grant, choices.network)
  const network = grant.network ?? choices.network ?? 'private'
  const { car = false } = choices
  if (car) checkCar(grant, network)
  const folder = readFlag('folder', isFolder)
  return {
    network,
    name: grant.name ?? (choices.name || readField('name', filename ?? '').name || null),
    type: filetype ?? '',
    keyvalues: grant.keyvalues ?? choices.keyvalues ?? {},
    groupId: grant.groupId ?? choices.groupId ?? null,
    expiresAt: choices.expiresAt ?? null,
    car: car || folder,
    folder,
    cidVersion: choices.cidVersion ?? 1,
    maxFileBytes: grant.maxFileBytes ?? null,
    allowedMimeTypes: grant.allowedMimeTypes ?? null,
  }
}

const PAIR =
  /^([\x21-\x2b\x2d-\x7e]+)(?: +((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?))?$/

/** The pairs of the header: `key <base64>,key <base64>`, with optional spaces around them. @throws ApiError 400. */
function readMetadata(header: string): Record<string, string> {
  const pairs: Record<string, string> = Object.create(null)
  for (const pair of header.split(',').map((one) => one.trim())) {
    if (pair === '') continue
    const [, key, value = ''] = PAIR.exec(pair) ?? []
    if (key === undefined || key in pairs) {
      throw badRequest('Upload-Metadata: must be pairs of a key and its value in base64, each key once')
    }
    pairs[key] = decodeText(Buffer.from(value, 'base64'))
  }
  return pairs
}

/** Decodes UTF-8, which tus clients write; anything else is treated as Latin-1, which the npm SDK writes (`btoa`). */
function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return bytes.toString('latin1')
  }
}
