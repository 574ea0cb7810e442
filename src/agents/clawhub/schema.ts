import { z } from 'zod'
import { text } from '../../http/shapes.ts'
import { skillRecord } from '../skills/schema.ts'

const link = z.string().max(2000).nullable()

const hubEnvVar = z.object({
  name: z.string().max(128),
  description: z.string().max(1000).optional(),
  guideUrl: z.string().max(2000).optional(),
  guideSteps: z.array(z.string().max(1000)).max(50).optional(),
  required: z.boolean().optional(),
})

/** What a skill of a folder may say of itself in `skill.json`, beside its SKILL.md. */
export const skillJson = z.object({
  longDescription: z.string().max(20_000).nullable().default(null),
  authorName: z.string().max(200).optional(),
  authorUrl: link.default(null),
  authorLogoUrl: link.default(null),
  category: z.string().max(64).default('other'),
  tags: z.array(z.string().max(64)).max(20).default([]),
  envVars: z.array(hubEnvVar).max(50).default([]),
  readmeUrl: link.default(null),
  featured: z.boolean().default(false),
})

/** A skill of the hub (compatibility 2.7). */
export const hubSkill = z.object({
  hubSkillId: z.string(),
  skillCid: z.string().nullable().describe('Its folder on IPFS; null where that shows when it is installed.'),
  name: z.string(),
  slug: z.string().describe('`@owner/name`.'),
  description: z.string(),
  longDescription: z.string().nullable(),
  authorName: z.string(),
  authorUrl: z.string().nullable(),
  authorLogoUrl: z.string().nullable(),
  category: z.string(),
  tags: z.array(z.string()),
  envVars: z.array(hubEnvVar),
  readmeUrl: z.string().nullable(),
  featured: z.boolean(),
  installCount: z.number().int().describe('Libraries of this Berth that have it.'),
  version: z.string().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type HubSkill = z.output<typeof hubSkill>

export const hubQuery = z.object({
  q: text(200).optional().describe('Words that its name, description or tags have.'),
  category: text(64).optional(),
  sort: z
    .enum(['popular', 'newest', 'name'], 'must be popular, newest or name')
    .default('popular')
    .describe('By how often they were installed, by age, or by name.'),
  featured: z.enum(['true', 'false'], 'must be true or false').optional(),
  cursor: text(1000).optional().describe('`nextCursor` of the page before.'),
})
export type HubQuery = z.output<typeof hubQuery>

export const hubPage = z.object({ skills: z.array(hubSkill), nextCursor: z.string().nullable() })
export const hubDetail = z.object({ skill: hubSkill })
export const installed = z.object({ success: z.literal(true), skill: skillRecord })
