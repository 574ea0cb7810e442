/**
 * URLs whose holders upload without a key. A URL may be used any number of times until it expires: a client that missed
 * the response repeats its upload, and gets the existing file. Its permissions are stored in a row, so that they end
 * with the key that signed it, and with the membership of the key's user; the plan's limits are those at the time of
 * use.
 */

import type { Request } from 'express'
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../db/pool.ts'
import type { PrismaClient } from '../../db/prisma.ts'
import { findSignedUpload } from '../../db/statements/uploads.ts'
import { badRequest, forbidden, unauthorized } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import { trimSlashes } from '../../lib/slashes.ts'
import { requireGroup } from '../groups.ts'
import { groupNotFound } from '../pins/pin-inserts.ts'
import type { UrlSigner } from '../signed-url.ts'
import type { UploadGrant } from './grant.ts'
import type { SignRequest } from './sign-schema.ts'
import { CID_VERSION_OPTION } from './tus-metadata.ts'
import { mayNotUpload, type UploadCaller } from './tus-rows.ts'

/** The terms of uploads through a URL. */
type Fixed = Omit<UploadGrant, 'uploader' | 'stillGood'>

const METHODS = JSON.stringify(['HEAD', 'PATCH', 'POST'])

export class SignedUploads {
  readonly #pool: Pool
  readonly #prisma: PrismaClient
  readonly #signer: UrlSigner

  constructor({ pool, prisma, signer }: { pool: Pool; prisma: PrismaClient; signer: UrlSigner }) {
    this.#pool = pool
    this.#prisma = prisma
    this.#signer = signer
  }

  /**
   * Creates a URL.
   * @param base the URL of this API; see `apiBase`.
   * @throws ApiError 404 if the group does not exist.
   */
  async create({ keyId, workspaceId, userId }: Principal, wanted: SignRequest, base: string): Promise<URL> {
    const { date, expires, network, group_id: groupId } = wanted
    if (groupId) await requireGroup(this.#prisma, { workspaceId, network }, groupId, groupNotFound)
    const fixed: Fixed = {
      network,
      groupId: groupId ?? undefined,
      name: wanted.filename || undefined,
      keyvalues: wanted.keyvalues ?? undefined,
      maxFileBytes: wanted.max_file_size ?? undefined,
      allowedMimeTypes: wanted.allow_mime_types ?? undefined,
    }
    const id = uuidv7()
    const expiresAt = new Date((date + expires) * 1000)
    await this.#prisma.signedUpload.create({ data: { id, keyId, fixed, expiresAt } })
    return this.#signer.sign(new URL(`${base}/v3/files/${id}`), {
      algorithm: 'PINATA2',
      date,
      expires,
      method: METHODS,
      extra: { 'X-User-ID': userId },
    })
  }

  /**
   * Resolves a URL to the uploader and the terms of the upload.
   * @param requested the URL as the client sent it.
   * @param id the last segment of its path.
   * @throws ApiError 401 if the URL has no signature; 403 if it is forged, not valid yet or expired, or if its signer
   *   may no longer upload.
   */
  async resolve(requested: URL, id: string): Promise<UploadCaller> {
    const url = new URL(requested)
    // The npm SDK adds this after signing the URL without it.
    url.searchParams.delete(CID_VERSION_OPTION)
    const verdict = this.#signer.verify(url, 'PINATA2', Date.now() / 1000)
    if (verdict !== 'good') throw REFUSALS[verdict]()
    const { keyId, fixed, uploader } = await this.#find(id)
    const stillGood = async () => void (await this.#find(id))
    return { keyId, grant: { ...(fixed as Fixed), uploader, stillGood } }
  }

  /** @throws ApiError 403 if its key is revoked, or its user may no longer upload. */
  async #find(id: string) {
    const row = await findSignedUpload.first(this.#pool, id)
    if (!row?.uploader) throw mayNotUpload()
    return { ...row, uploader: row.uploader }
  }
}

const REFUSALS = {
  unsigned: () => unauthorized('X-Signature: missing; POST /v3/files/sign makes signed URLs', 'unsigned'),
  forged: () => forbidden('X-Signature: the URL is not as it was signed', 'forged'),
  early: () => forbidden('X-Date: the signed URL is not good yet', 'early'),
  expired: () => forbidden('X-Expires: the signed URL has expired', 'expired'),
}

/**
 * The URL of this API as the client sees it, without a trailing slash.
 * @param publicUrl the setting PUBLIC_URL; without it, the origin that the request names.
 * @throws ApiError 400 if the Host header is not a host.
 */
export function apiBase(req: Request, publicUrl: string | undefined): string {
  const base = publicUrl ?? `${req.protocol}://${req.get('host') ?? ''}`
  if (!URL.canParse(base)) throw badRequest('Host: not a host')
  return trimSlashes(base)
}
