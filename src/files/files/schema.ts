import { z } from 'zod'
import { limit, order, text } from '../../http/shapes.ts'
import { keyvaluesFilter, keyvaluesPatch } from '../keyvalues.ts'

/** A file record (compatibility 1.2), and when it ends, which `PUT` would otherwise set unseen. */
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
  expires_at: z
    .number()
    .nullable()
    .describe('When it is to be deleted, a Unix time in seconds; null for never.'),
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

/** In the year 5138: what has more digits was meant in milliseconds. */
const MAX_UNIX_SECONDS = 99_999_999_999
export const NOT_SECONDS = 'must be a Unix time in seconds'

/** When a file is to be deleted. */
export const expiresAt = z
  .int(NOT_SECONDS)
  .max(MAX_UNIX_SECONDS, NOT_SECONDS)
  .refine((seconds) => seconds * 1000 > Date.now(), 'must be in the future')

/** `PUT /v3/files/{network}/{id}` (compatibility 1.4): what is absent stays as it is. */
export const fileChanges = z
  .object({
    name: text(255)
      .nullable()
      .transform((name) => name || null)
      .optional()
      .describe('`null` or empty: no name.'),
    keyvalues: keyvaluesPatch
      .optional()
      .describe(
        'Merged by key into the pairs that are there, of which there are 10 at most; `null` removes one.',
      ),
    expires_at: expiresAt
      .nullable()
      .optional()
      .describe('When it is to be deleted, within minutes: a Unix time in seconds. `null`: never.'),
  })
  .refine(
    (changes) => Object.values(changes).some((value) => value !== undefined),
    'must have a name, keyvalues or expires_at',
  )
export type FileChanges = z.output<typeof fileChanges>
