/** Bodies and queries of templates (compatibility 2.2 and 2.14). */
import { z } from 'zod'
import { limit, text } from '../../http/shapes.ts'
import { TEMPLATE_SLUG, templateRecord } from './template.ts'

const address = text(2048).regex(/^https?:\/\/\S+$/, 'must be an http or https address')
const slug = text(100).regex(TEMPLATE_SLUG, 'must have lower-case letters, digits and single hyphens only')
const name = text(100).trim().min(1, 'must not be empty')

/** Public clients offer it; what is on another server cannot be had from here. */
const gitUrl = z
  .unknown()
  .refine(
    (value) => value == null,
    'templates are made of a snapshot: give agentId, and push to that agent first',
  )
  .optional()

const snapshotCid = text(512).describe('Of the agent’s history. Not given: the newest one.')
const agentId = text(64).describe('An agent of the workspace, of whose snapshot the template is made.')

/** What a template is told beside its manifest. */
const told = {
  name: name.optional(),
  nameOverride: name.optional().describe('As `name`.'),
  slug: slug.optional(),
  slugOverride: slug.optional().describe('As `slug`.'),
  description: text(10_000).trim().min(1, 'must not be empty').optional(),
  longDescription: text(10_000).nullable().optional(),
  category: text(100).trim().min(1, 'must not be empty').optional(),
  tags: z.array(text(50).trim().min(1, 'must not be empty')).max(10, 'must have at most 10 items').optional(),
  authorName: text(200).optional(),
  authorUrl: address.nullable().optional(),
  authorLogoUrl: address.nullable().optional(),
}

export const newTemplate = z.object({ gitUrl, agentId, snapshotCid: snapshotCid.optional(), ...told })
export type NewTemplate = z.output<typeof newTemplate>

export const templateChange = z
  .object({ gitUrl, agentId: agentId.optional(), snapshotCid: snapshotCid.optional(), ...told })
  .refine(({ agentId, snapshotCid }) => !snapshotCid || agentId, {
    path: ['agentId'],
    message: 'must be given with snapshotCid',
  })
export type TemplateChange = z.output<typeof templateChange>

export const validation = z.object({ gitUrl, agentId, snapshotCid: snapshotCid.optional() })

export const templateQuery = z.object({
  category: text(100).optional(),
  featured: z
    .enum(['true', 'false'], 'must be true or false')
    .transform((value) => value === 'true')
    .optional(),
  submittedBy: z.literal('me', 'must be me').optional(),
  limit: limit(100, 1000),
  pageToken: text(255).optional(),
})

export const templateList = z.object({
  templates: z.array(templateRecord),
  categories: z.array(z.string()).describe('Of all templates that the caller sees, not of this page only.'),
})
export const oneTemplate = z.object({ template: templateRecord })
export const submitted = z.object({ success: z.literal(true), template: templateRecord })
export const archived = z.object({ success: z.literal(true), message: z.string() })
export const validated = z.object({
  valid: z.boolean(),
  errors: z.array(z.string()),
  manifest: z.record(z.string(), z.unknown()).nullable(),
  readme: z.string().nullable(),
  files: z.array(z.string()).describe('Paths, at most 1000.'),
  commitSha: z.string(),
})
