/** Bodies and queries of templates. */

import { z } from 'zod'
import { commitSha, like, withExample } from '../../http/fields.ts'
import { paging } from '../../http/pages.ts'
import { optionalName, text, visibleText } from '../../http/shapes.ts'
import { checkSource, ofRepository, repository, requireSource } from './git/origin.ts'
import { TEMPLATE_SLUG, templateRecord } from './template.ts'

const address = text(2048).regex(/^https?:\/\/\S+$/, 'must be an http or https address')
const slug = text(100).regex(TEMPLATE_SLUG, 'must have lower-case letters, digits and single hyphens only')
const name = visibleText(100)

const snapshotCid = text(512).describe('A snapshot of the agent’s history. Default: the newest one.')
const agentId = text(64).describe('The agent of the workspace whose snapshot becomes the template.')
const source = { agentId: agentId.optional(), snapshotCid: snapshotCid.optional(), ...repository }

/** Fields of a template that a body may set in addition to its manifest. */
const given = {
  name: name.optional(),
  nameOverride: name.optional().describe('The same as `name`.'),
  slug: slug.optional(),
  slugOverride: slug.optional().describe('The same as `slug`.'),
  description: visibleText(10_000).optional(),
  longDescription: text(10_000).nullable().optional(),
  category: visibleText(100).optional(),
  tags: z.array(visibleText(50)).max(10, 'must have at most 10 items').optional(),
  authorName: optionalName(200).optional(),
  authorUrl: address.nullable().optional(),
  authorLogoUrl: address.nullable().optional(),
}

export const newTemplate = z
  .object({ ...source, ...given })
  .meta({ examples: [{ agentId: 'x7f3k2ab', slug: 'librarian', category: 'reference', tags: ['books'] }] })
  .superRefine(requireSource)
export type NewTemplate = z.output<typeof newTemplate>

export const templateChange = z
  .object({ ...source, ...given })
  .meta({ examples: [{ agentId: 'x7f3k2ab', description: 'Keeps a catalogue of books.' }] })
  .superRefine(checkSource)
  .refine(({ agentId, snapshotCid }) => !snapshotCid || agentId, {
    path: ['agentId'],
    message: 'must be given with snapshotCid',
  })
export type TemplateChange = z.output<typeof templateChange>

export const validation = z
  .object(source)
  .meta({ examples: [{ agentId: 'x7f3k2ab' }] })
  .superRefine(requireSource)
export type Validation = z.output<typeof validation>
export const refSearch = ofRepository.extend({
  search: text(255).optional().describe('Text that the name contains, in any case.'),
})

export const templateQuery = z.object({
  category: text(100).optional(),
  featured: z
    .enum(['true', 'false'], 'must be true or false')
    .transform((value) => value === 'true')
    .optional(),
  submittedBy: z.literal('me', 'must be me').optional(),
  ...paging(100, 1000),
})

export const templateList = z.object({
  templates: z.array(templateRecord),
  categories: z
    .array(z.string())
    .describe('Of all templates that the caller can see, not only of this page.'),
})
export const oneTemplate = z.object({ template: templateRecord })
export const submitted = z.object({ success: z.literal(true), template: templateRecord })
export const archived = z.object({ success: z.literal(true), message: like('Template Librarian archived') })
export const validated = z.object({
  valid: like(true),
  errors: z.array(z.string()),
  manifest: z.record(z.string(), z.unknown()).nullable(),
  readme: like('# Librarian\n').nullable(),
  files: withExample(z.array(z.string()), ['README.md', 'manifest.json', 'workspace/AGENTS.md']).describe(
    'Paths, at most 1000.',
  ),
  commitSha,
})
const names = withExample(z.array(z.string()), ['main']).describe('Names, at most 1000.')
export const branchList = z.object({ branches: names })
export const refList = z.object({
  branches: names,
  tags: names,
  defaultBranch: like('main').nullable().describe('Null if the server does not report it.'),
})
