/** Links to private files (compatibility 1.10): whoever has one reads the file until it expires. */
import type { Pool } from '../../db/pool.ts'
import { badRequest, notFound } from '../../errors.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import type { GatewayService } from '../gateways/service.ts'
import type { UrlSigner } from '../signed-url.ts'
import type { LinkRequest } from './sign-schema.ts'

export interface LinkServices {
  pool: Pool
  gateways: GatewayService
  signer: UrlSigner
}

/**
 * Signs the address of a private file on one of the workspace's gateways.
 * @throws ApiError 400 naming `url` for what is no such address, 404 where the gateway or the file is not the
 *   workspace's.
 */
export async function signLink(
  { pool, gateways, signer }: LinkServices,
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
  const { rowCount } = await pool.query(
    `SELECT FROM file WHERE workspace_id = $1 AND network = 'private' AND cid_v1 = $2
       AND status = 'pinned' AND removed_at IS NULL LIMIT 1`,
    [workspaceId, canonical],
  )
  if (rowCount === 0) throw notFound('url: there is no such private file')
  // A link ends with its gateway: the name may be somebody else's later.
  return signer.sign(url, { algorithm: 'PINATA1', date, expires, method, subject: gateway.id })
}
