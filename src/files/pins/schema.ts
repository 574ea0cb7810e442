import { z } from 'zod'
import { limit, order, text } from '../../http/shapes.ts'
import { keyvalues } from '../keyvalues.ts'

/** What a pin request may be in before its content is pinned (compatibility 1.6). */
export const PENDING = ['prechecking', 'backfilled', 'searching', 'retrieving'] as const
/** How a pin request may fail; final. */
export const FAILURES = [
  'expired',
  'over_free_limit',
  'over_max_size',
  'invalid_object',
  'bad_host_node',
] as const
export type Failure = (typeof FAILURES)[number]
const PIN_STATUSES = [...PENDING, ...FAILURES] as const

const MAX_HOST_NODES = 20

/** `POST /v3/files/public/pin_by_cid` (contract 4.1). */
export const pinRequest = z.object({
  cid: z.string().describe('The CID to pin: any version, any multibase.'),
  name: text(255).nullish().describe('A name for the file.'),
  group_id: z.uuid('must be a UUID').toLowerCase().nullish().describe('The group to place the file in.'),
  keyvalues: keyvalues.nullish().describe('Metadata: at most 10 pairs of strings.'),
  host_nodes: z
    .array(text(1024))
    .max(MAX_HOST_NODES, `must have at most ${MAX_HOST_NODES} entries`)
    .nullish()
    .describe('Where the content can be had: peer ids, or multiaddrs that end in /p2p/<peer id>.'),
})

/** A pin record (contract 2.1), with the npm SDK's spelling of `hose_nodes` beside the contract's. */
export const pinRecord = z.object({
  id: z.string(),
  name: z.string().nullable(),
  cid: z.string(),
  keyvalues: z.record(z.string(), z.string()),
  group_id: z.string().nullable(),
  status: z.enum([...PIN_STATUSES, 'pinned']),
  date_queued: z.string(),
  hose_nodes: z.array(z.string()),
  host_nodes: z.array(z.string()),
})
export type PinRecord = z.output<typeof pinRecord>

export const pinQuery = z.object({
  status: z
    .string()
    // As one published description of the API misspells it.
    .transform((status) => (status === 'retreiving' ? 'retrieving' : status))
    .pipe(z.enum(PIN_STATUSES))
    .optional(),
  cid: z.string().optional().describe('Only this CID, however it is spelled.'),
  order: order.optional().describe('`ASC` or `DESC` by age; newest first unless told.'),
  sort: order.optional().describe('The same as `order`.'),
  limit: limit(10, 250),
  pageToken: text(255).optional(),
  includesCount: z.enum(['true', 'false']).optional().describe('Adds `count`, the number of all that match.'),
})

export const pinPage = z.object({
  data: z.object({
    jobs: z.array(pinRecord),
    count: z.number().optional(),
    next_page_token: z.string().describe('Empty on the last page.'),
  }),
})
