/** Shapes of the IPFS Pinning Service API 1.0.0 (https://ipfs.github.io/pinning-services-api-spec/). */

import { z } from 'zod'
import { contentCid, keyvaluePairs, like, timestamp, uuid, withExample } from '../../http/fields.ts'
import { cid, limit, optionalName, pathId, text, time } from '../../http/shapes.ts'
import { parseJson } from '../../lib/read.ts'
import { DIALLED_HOST_NODES, MAX_HOST_NODES } from '../host-nodes.ts'
import { keyvalues, keyvaluesFilter } from '../keyvalues.ts'
import { FAILURES } from '../pins/pin-record.ts'

const MAX_CIDS = 10

/** The file statuses that each status of the specification stands for. */
export const STATUSES = {
  queued: ['prechecking', 'backfilled'],
  pinning: ['searching', 'retrieving'],
  pinned: ['pinned'],
  failed: FAILURES,
} as const
export type Status = keyof typeof STATUSES
const status = z.enum(Object.keys(STATUSES) as Status[])

/** A pin, as requested by a client. */
export const pin = z.object({
  cid: cid.describe('The CID to pin: any version, any multibase.'),
  name: withExample(optionalName(255).nullish(), 'Spring catalogue').describe('A name to find it by.'),
  origins: z
    .array(z.string())
    .max(MAX_HOST_NODES)
    .nullish()
    .describe(
      `Multiaddrs of nodes that have the content. The first ${DIALLED_HOST_NODES} that can be dialled are kept; the others are ignored.`,
    ),
  meta: keyvalues.nullish().describe('Metadata: at most 10 pairs of strings.'),
})

export const pinStatus = z.object({
  requestid: uuid.describe('The id of the file.'),
  status,
  created: timestamp.describe(
    'When it was requested, with milliseconds. Lists are ordered and paginated by it.',
  ),
  pin: z.object({
    cid: contentCid,
    name: z.string().optional(),
    origins: withExample(z.array(z.string()), [
      '/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp',
    ]),
    meta: keyvaluePairs,
  }),
  delegates: z
    .array(z.string())
    .describe('Addresses of the IPFS node to connect to; none while it cannot be dialled.'),
  info: z
    .record(z.string(), z.string())
    .describe(
      '`status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`.',
    ),
})
export type PinStatus = z.output<typeof pinStatus>

export const pinResults = z.object({
  count: like(1).describe(
    'How many pins match in total, on this page and the following ones; 100000 if there are more.',
  ),
  results: z.array(pinStatus),
})

export const requestParams = z.object({ requestid: pathId.describe('The id of the pin request, a UUID.') })

const statusList = z
  .string()
  .transform((value, context) => {
    const list = z.array(status).safeParse(value.split(','))
    if (list.success) return list.data
    context.addIssue(`must be a comma separated list of ${Object.keys(STATUSES).join(', ')}`)
    return z.NEVER
  })
  .meta({ pattern: `^(${Object.keys(STATUSES).join('|')})(,(${Object.keys(STATUSES).join('|')}))*$` })

const cidList = z
  .string()
  .meta({ format: 'cids' })
  .transform((value) => value.split(','))
  .refine((cids) => cids.length <= MAX_CIDS, `must have at most ${MAX_CIDS} entries`)

const metaFilter = z
  .string()
  .transform((value, context) => {
    const pairs = keyvaluesFilter.safeParse(parseJson(value) ?? null)
    if (pairs.success) return JSON.stringify(pairs.data)
    context.addIssue('must be a JSON object of strings')
    return z.NEVER
  })
  .meta({ format: 'json-pairs' })

export const pinsQuery = z.object({
  cid: cidList.optional().describe('Only these CIDs, at most 10, separated by commas, in any spelling.'),
  name: text(255).optional().describe('Only pins with this name.'),
  match: z
    .enum(['exact', 'iexact', 'partial', 'ipartial'])
    .default('exact')
    .describe('How `name` is compared: whole or partial, case-sensitive or (`i`) case-insensitive.'),
  status: statusList
    .optional()
    .describe(
      'Only pins in these statuses, separated by commas. Default: only `pinned` ones; with `name`, also those that ' +
        'are queued or being pinned.',
    ),
  before: time
    // A pin that was created within the millisecond of `before` counts as created before it.
    .transform((value) => Date.parse(value) + (/\.\d{3}\d*[1-9]/.test(value) ? 1 : 0))
    .optional()
    .describe('Only pins created before this; use `created` of the last pin to get the next page.'),
  after: time
    .transform((value) => Date.parse(value) + 1)
    .optional()
    .describe('Only pins created after this.'),
  limit: limit(10, 1000),
  meta: metaFilter.optional().describe('Metadata as a JSON object; all pairs must match.'),
})
