import type { Request } from 'express'
import type { Pool } from '../../db/pool.ts'
import type { Uploader } from '../../db/statements/uploads.ts'
import { badRequest, forbidden, messages } from '../../errors.ts'
import { grants, type Principal, type Scope } from '../../http/principal.ts'
import type { Bounds } from '../../lib/bounds.ts'
import type { DiskReserve } from '../../lib/disk-reserve.ts'
import type { Storages } from '../../storage/open.ts'
import type { Network } from '../../storage/port.ts'
import type { KeptFile } from './keep.ts'
import type { Reservations } from './reservations.ts'

/**
 * The choices of an upload. A key leaves every choice to the form, but that a key for private uploads fixes their network;
 * a signed URL fixes some of them. What is
 * fixed here the form cannot change: another network is refused, anything else is passed over.
 */
export interface UploadGrant {
  uploader: Uploader
  network?: Network | undefined
  /** The network of a form that names none; private, if left out. */
  defaultNetwork?: Network | undefined
  groupId?: string | undefined
  name?: string | undefined
  keyvalues?: Record<string, string> | undefined
  /** A bound below that of the plan for one file. */
  maxFileBytes?: number | undefined
  /** Types as `image/png` or `image/*`, and `directory` for folders. Left out: every type. */
  allowedMimeTypes?: string[] | undefined
  /** Asked when the bytes are here, which may be long after they began to come. @throws ApiError where the permission has ended. */
  stillGood?(): Promise<void>
}

export interface UploadServices {
  pool: Pool
  /** Connections of their own for transactions that wait for an IPFS node: one that hangs must not take all the others. */
  keepPool: Pool
  storages: Storages
  /** A folder for the bytes of uploads whose form says only after the file what is to become of it. */
  spoolDir: string
  bounds: Bounds
  reservations: Reservations
  disk: DiskReserve
}

export interface ReceivedUpload extends KeptFile {
  network: Network
  userId: string
}

/**
 * `receiveUpload` of `receive.ts`: reads a multipart form from the request, and keeps its file.
 * @param signal fires when the client has gone.
 * @throws ApiError with what is wrong; then the content is not kept.
 */
export type ReceiveUpload = (
  req: Request,
  grant: UploadGrant,
  services: UploadServices,
  signal: AbortSignal,
) => Promise<ReceivedUpload>

/** Keys that upload, to whichever network. */
export const UPLOAD_SCOPES: Scope[] = ['org:files:write', 'org:private_files:write']

/** The network that a key is bound to; undefined for both. */
export const networkOfKey = ({ scopes }: Principal): 'private' | undefined =>
  grants(scopes, 'org:files:write') ? undefined : 'private'

/** @throws ApiError 400 when a client names another network than its key or URL is for. */
export function checkNetwork(
  { network }: Pick<UploadGrant, 'network'>,
  requested: Network | undefined,
): void {
  if (network && requested && requested !== network)
    throw badRequest(`network: this key or URL is for the ${network} network`)
}

/** @throws ApiError where no CAR may be uploaded: 403 on a plan without, 400 on the private network. */
export function checkCar({ uploader }: UploadGrant, network: Network): void {
  if (!uploader.plan.pinByCid) throw forbidden(messages.carPlan)
  if (network !== 'public') throw badRequest('car: only on the public network')
}
