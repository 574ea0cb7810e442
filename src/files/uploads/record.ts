import { z } from 'zod'
import { network } from '../../http/shapes.ts'
import { fileRecord } from '../files/schema.ts'
import type { ReceivedUpload } from './grant.ts'

/** A file record as an upload answers it (compatibility 1.2). */
export const uploadRecord = fileRecord.extend({
  vectorized: z.literal(false),
  network,
  is_duplicate: z
    .boolean()
    .describe(
      'Whether the workspace had this content already, until `expires_at` or longer; then this is the file that it had, unchanged.',
    ),
  user_id: z.string(),
})

export const toUploadRecord = ({ file, isDuplicate, network, userId }: ReceivedUpload) => ({
  ...file,
  vectorized: false as const,
  network,
  is_duplicate: isDuplicate,
  user_id: userId,
})
