import { z } from 'zod'
import { limit, text } from '../../http/shapes.ts'

/** A group (compatibility 1.5). */
export const groupRecord = z.object({
  id: z.string(),
  name: z.string(),
  is_public: z.boolean(),
  created_at: z.string(),
})
export type GroupRecord = z.output<typeof groupRecord>

const name = text(255).trim().min(1, 'must not be empty')

export const newGroup = z.object({ name, is_public: z.boolean().default(false) })

/** What is absent stays as it is. */
export const groupChanges = z
  .object({ name: name.optional(), is_public: z.boolean().optional() })
  .refine(
    (changes) => Object.values(changes).some((value) => value !== undefined),
    'must have a name or is_public',
  )

export const groupQuery = z.object({
  name: text(255).optional().describe('Part of the name, in any case.'),
  isPublic: z.enum(['true', 'false']).optional(),
  limit: limit(10, 1000),
  pageToken: text(255).optional(),
})

export const groupPage = z.object({
  data: z.object({ groups: z.array(groupRecord), next_page_token: z.string() }),
})
