import type { Request } from 'express'
import { badRequest } from '../../errors.ts'

/**
 * The address of this API as the client sees it, without a slash at its end.
 * @param publicUrl the setting PUBLIC_URL; without it, where the client says that it sent its request.
 * @throws ApiError 400 for a Host header that is no host.
 */
export function apiBase(req: Request, publicUrl: string | undefined): string {
  const base = publicUrl ?? `${req.protocol}://${req.get('host') ?? ''}`
  if (!URL.canParse(base)) throw badRequest('Host: not a host')
  return base.replace(/\/+$/, '')
}
