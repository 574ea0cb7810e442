import type { Pool } from '../../db/pool.ts'
import type { Uploader } from '../../db/statements/uploads.ts'
import { badRequest, forbidden, messages } from '../../errors.ts'
import { grants, type Principal, type Scope } from '../../http/principal.ts'
import type { Network } from '../../storage/port.ts'
import type { FileServices } from '../services.ts'
import type { KeptFile } from './keep.ts'
import type { Reservations } from './reservations.ts'

/**
 * The choices of an upload. A key leaves all choices to the form, except that a key for private uploads fixes the
 * network; a signed URL fixes some. The form cannot change fixed choices: another network is rejected, anything else is
 * ignored.
 */
export interface UploadGrant {
  uploader: Uploader
  network?: Network | undefined
  /** The network if the form names none. Default: private. */
  defaultNetwork?: Network | undefined
  groupId?: string | undefined
  name?: string | undefined
  keyvalues?: Record<string, string> | undefined
  /** A limit for one file below the plan's limit. */
  maxFileBytes?: number | undefined
  /** Types such as `image/png` or `image/*`, and `directory` for folders. Default: every type. */
  allowedMimeTypes?: string[] | undefined
  /**
   * Called when the bytes have arrived, possibly long after the upload began. @throws ApiError if the permission has
   * ended.
   */
  stillGood?(): Promise<void>
}

export interface UploadServices extends FileServices {
  /** Separate connections for transactions that wait for an IPFS node: a hanging node must not take all others. */
  keepPool: Pool
  /** A folder for the bytes of uploads if their form specifies their handling only after the file. */
  spoolDir: string
  reservations: Reservations
}

export interface ReceivedUpload extends KeptFile {
  network: Network
  userId: string
}

/** Keys that may upload to either network. */
export const UPLOAD_SCOPES: Scope[] = ['org:files:write', 'org:private_files:write']

/** The network that a key is limited to; undefined for both. */
export const networkOfKey = ({ scopes }: Principal): 'private' | undefined =>
  grants(scopes, 'org:files:write') ? undefined : 'private'

/** @throws ApiError 400 if a client names a network other than its key's or URL's. */
export function checkNetwork(
  { network }: Pick<UploadGrant, 'network'>,
  requested: Network | undefined,
): void {
  if (network && requested && requested !== network)
    throw badRequest(`network: this key or URL is for the ${network} network`)
}

/** @throws ApiError if CARs cannot be uploaded: 403 if the plan excludes them, 400 on the private network. */
export function checkCar({ uploader }: UploadGrant, network: Network): void {
  if (!uploader.plan.pinByCid) throw forbidden(messages.carPlan)
  if (network !== 'public') throw badRequest('car: only on the public network')
}
