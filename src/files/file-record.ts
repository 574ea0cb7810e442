import { z } from 'zod'

/** A file record, and when it ends, which `PUT` would otherwise set unseen. */
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
