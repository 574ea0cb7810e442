import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import { network } from '../../http/shapes.ts'

const cid = z.string().describe('The original CID, however it is spelled.')
export const swapParams = z.object({ network, cid })
/** Of the older path, which is from before there were two networks. */
export const olderParams = z.object({ cid }).transform(({ cid }) => ({ cid, network: 'public' as const }))

/** The body of a swap, in both spellings that clients use (compatibility 1.7). */
export const swapRequest = z.object({
  swap_cid: z.string().optional().describe('The CID to serve from now on: a file of the same network.'),
  swapCid: z.string().optional().describe('The same as `swap_cid`.'),
})

/** A change of a swap (contract 2.2). */
export const swapEntry = z.object({
  mapped_cid: z.string().nullable().describe('What the CID was swapped to; null where the swap was removed.'),
  created_at: z.string().describe('UTC, with microseconds.'),
})
export type SwapEntry = z.output<typeof swapEntry>

/** The same under the older path. */
export const olderEntry = z.object({ mappedCid: z.string().nullable(), createdAt: z.string() })

export const historyQuery = z.object({
  domain: z
    .string('is required: the host of a gateway, or its left label')
    .min(1, 'must not be empty')
    .describe('A gateway with the hot swaps plugin: its host, with or without port, or its left label.'),
})

/** The one CID of a swap request. @throws ApiError 400 for none, and for two that differ. */
export function requestedCid({ swap_cid, swapCid }: z.output<typeof swapRequest>): string {
  const cid = swap_cid ?? swapCid
  if (cid === undefined) throw badRequest('swap_cid: is required')
  if (swapCid !== undefined && swapCid !== cid) throw badRequest('swapCid: says another CID than swap_cid')
  return cid
}
