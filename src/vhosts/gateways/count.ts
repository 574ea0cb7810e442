import type { Request, Response } from 'express'
import type { RequestCounts } from '../../files/analytics/request-counts.ts'
import { canonicalCid } from '../../files/cid.ts'
import type { Gateway } from '../../files/gateways/gateways.ts'
import { showName } from '../../storage/dag/names.ts'
import type { ContentPath } from './content.ts'
import type { KeptContent } from './kept.ts'

/** The status of a client that disconnects before the end, as in other services. */
const CUT_SHORT = 499

/** Counts the response to a request for kept content when it has ended. The client's address is not recorded. */
export function countAnswer(
  counts: RequestCounts,
  { id: gatewayId }: Gateway,
  { cid, names }: ContentPath,
  { name }: KeptContent,
  req: Request,
  res: Response,
): void {
  const before = req.socket.bytesWritten
  res.once('close', () => {
    const status = res.writableFinished ? res.statusCode : CUT_SHORT
    counts.add({
      gatewayId,
      cid: canonicalCid(cid),
      // A name that leads nowhere is made up.
      fileName: status < 400 || status === CUT_SHORT ? showName(names.at(-1) ?? name ?? '') : '',
      userAgent: req.get('user-agent'),
      referrer: req.get('referer'),
      status,
      bytes: req.socket.bytesWritten - before,
    })
  })
}
