import { z } from 'zod'
import { limit, order, text } from '../../http/shapes.ts'
import { keyvaluesFilter } from '../keyvalues.ts'

/** A file record (compatibility 1.2). */
export const fileRecord = z.object({
  id: z.string(),
  name: z.string().nullable(),
  cid: z.string(),
  size: z.number().describe('Bytes of the content.'),
  number_of_files: z.number(),
  mime_type: z.string(),
  keyvalues: z.record(z.string(), z.string()),
  group_id: z.string().nullable(),
  created_at: z.string(),
})
export type FileRecord = z.output<typeof fileRecord>

export const fileQuery = z.object({
  name: text(255).optional().describe('Part of the name, in any case.'),
  group: z
    .union([z.literal('null'), z.uuid().toLowerCase()], 'must be a UUID or null')
    .optional()
    .describe('A group id, or `null` for files in no group.'),
  mimeType: text(255).optional(),
  cid: z.string().optional().describe('Only this CID, however it is spelled.'),
  cidPending: z
    .enum(['true', 'false'])
    .optional()
    .describe('`true`: only files that still wait for a CID; there are none.'),
  keyvalues: keyvaluesFilter.describe('`keyvalues[<key>]=<value>`: all pairs must match.'),
  metadata: keyvaluesFilter.describe('The same as `keyvalues`.'),
  order: order.default('DESC').describe('`ASC` or `DESC` by age.'),
  limit: limit(10, 1000),
  pageToken: text(255).optional(),
})

export const filePage = z.object({
  data: z.object({
    files: z.array(fileRecord),
    next_page_token: z.string().describe('Empty on the last page.'),
  }),
})
