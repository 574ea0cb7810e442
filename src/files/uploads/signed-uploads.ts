/**
 * URLs by which their holder uploads without a key (compatibility 1.3). A URL may be used as often as its
 * holder likes until it expires: a client that missed the answer sends its upload once more, and then gets
 * the file that is there. What it allows is a row, so that it ends with the key that signed it, and with the
 * membership of the key's user; the plan's limits are those of the moment of use.
 */

import { uuidv7 } from 'uuidv7'
import type { Principal } from '../../accounts/authenticator.ts'
import type { Pool } from '../../db/pool.ts'
import { forbidden, notFound, unauthorized } from '../../errors.ts'
import { findGroup } from '../groups/service.ts'
import type { UrlSigner } from '../signed-url.ts'
import type { UploadGrant } from './grant.ts'
import type { SignRequest } from './sign-schema.ts'
import { UPLOADER } from './signed-uploader.ts'
import { CID_VERSION_OPTION } from './tus-metadata.ts'
import { mayNotUpload, type UploadCaller } from './tus-rows.ts'

/** What a URL fixes of the uploads that come by it. */
type Fixed = Omit<UploadGrant, 'uploader'>

const METHODS = JSON.stringify(['HEAD', 'PATCH', 'POST'])

export class SignedUploads {
  readonly #pool: Pool
  readonly #signer: UrlSigner

  constructor(pool: Pool, signer: UrlSigner) {
    this.#pool = pool
    this.#signer = signer
  }

  /**
   * Makes a URL.
   * @param base the address of this API, see `apiBase`.
   * @throws ApiError 404 for a group that is not there.
   */
  async create({ keyId, workspaceId, userId }: Principal, wanted: SignRequest, base: string): Promise<URL> {
    const { date, expires, network, group_id: groupId } = wanted
    if (groupId && !(await findGroup(this.#pool, { workspaceId, network }, groupId))) {
      throw notFound('group_id: there is no such group')
    }
    const fixed: Fixed = {
      network,
      groupId: groupId ?? undefined,
      name: wanted.filename || undefined,
      keyvalues: wanted.keyvalues ?? undefined,
      maxFileBytes: wanted.max_file_size ?? undefined,
      allowedMimeTypes: wanted.allow_mime_types ?? undefined,
    }
    const id = uuidv7()
    await this.#pool.query(
      'INSERT INTO signed_upload (id, key_id, fixed, expires_at) VALUES ($1, $2, $3, to_timestamp($4))',
      [id, keyId, JSON.stringify(fixed), date + expires],
    )
    return this.#signer.sign(new URL(`${base}/v3/files/${id}`), {
      algorithm: 'PINATA2',
      date,
      expires,
      method: METHODS,
      extra: { 'X-User-ID': userId },
    })
  }

  /**
   * Who uploads by a URL, and what.
   * @param requested the URL as the client sent it.
   * @param id the last segment of its path.
   * @throws ApiError 401 for a URL without a signature, 403 for one that is forged, not yet good or over, or
   *   whose signer may upload no more.
   */
  async resolve(requested: URL, id: string): Promise<UploadCaller> {
    const url = new URL(requested)
    // The npm SDK adds this to a URL that was signed without it.
    url.searchParams.delete(CID_VERSION_OPTION)
    const verdict = this.#signer.verify(url, 'PINATA2', Date.now() / 1000)
    if (verdict !== 'good') throw REFUSALS[verdict]()
    const { rows } = await this.#pool.query(
      `SELECT key_id, fixed, ${UPLOADER('signed_upload')} AS uploader FROM signed_upload WHERE id = $1`,
      [id],
    )
    const [row] = rows
    if (!row?.uploader) throw mayNotUpload()
    return { keyId: row.key_id, grant: { ...row.fixed, uploader: row.uploader } }
  }
}

const REFUSALS = {
  unsigned: () => unauthorized('X-Signature: missing; POST /v3/files/sign makes signed URLs', 'unsigned'),
  forged: () => forbidden('X-Signature: the URL is not as it was signed', 'forged'),
  early: () => forbidden('X-Date: the signed URL is not good yet', 'early'),
  expired: () => forbidden('X-Expires: the signed URL has expired', 'expired'),
}
