/** A pin request as clients read it. */

import { z } from 'zod'
import { isoTime } from '../../db/statements/statement.ts'
import { contentCid, keyvaluePairs, like, timestamp, uuid } from '../../http/fields.ts'

/** The states of a pin request before its content is pinned. */
export const PENDING = ['prechecking', 'backfilled', 'searching', 'retrieving'] as const
/** The ways in which a pin request may fail; final. */
export const FAILURES = [
  'expired',
  'over_free_limit',
  'over_max_size',
  'invalid_object',
  'bad_host_node',
] as const
export type Failure = (typeof FAILURES)[number]
export const PIN_STATUSES = [...PENDING, ...FAILURES] as const

/** A pin record (contract 2.1), with the npm SDK's spelling `hose_nodes` in addition to the contract's. */
export const pinRecord = z.object({
  id: uuid,
  name: like('Spring catalogue').nullable(),
  cid: contentCid,
  keyvalues: keyvaluePairs,
  group_id: z.string().nullable(),
  status: z.enum([...PIN_STATUSES, 'pinned']),
  date_queued: timestamp,
  hose_nodes: z.array(z.string()),
  host_nodes: z.array(z.string()),
})
export type PinRecord = z.output<typeof pinRecord>

/** The columns of a {@link PinRecord}, from `file`. */
export const PIN_COLUMNS = `id, name, cid, keyvalues, group_id, status, ${isoTime('created_at')} AS date_queued,
  host_nodes AS hose_nodes, host_nodes`
