/** Skills of the hub: the format for clients, and the format of its sources. */

import { z } from 'zod'
import { ApiError, notFound } from '../../errors.ts'
import { like, timestamp, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import type { SkillFile } from '../skills/files.ts'
import { SKILL_NAME, type SkillRecord, skillRecord } from '../skills/skill-schema.ts'

const link = z.string().max(2000).nullable()

const hubEnvVar = z.object({
  name: z.string().max(128),
  description: z.string().max(1000).optional(),
  guideUrl: z.string().max(2000).optional(),
  guideSteps: z.array(z.string().max(1000)).max(50).optional(),
  required: z.boolean().optional(),
})

/** `skill.json`, which the folder of a skill may contain next to its SKILL.md. */
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

/** A skill of the hub. */
const hubSkill = z.object({
  hubSkillId: like('QGJlcnRoL2pvdXJuYWw'),
  skillCid: z
    .string()
    .nullable()
    .describe('Its folder on IPFS; null if it is known only after the installation.'),
  name: like('journal'),
  slug: like('@berth/journal').describe('`@owner/name`.'),
  description: like('Keep a short journal of what was done and decided, so that the next session knows it.'),
  longDescription: z.string().nullable(),
  authorName: like('Berth'),
  authorUrl: z.string().nullable(),
  authorLogoUrl: z.string().nullable(),
  category: like('productivity'),
  tags: withExample(z.array(z.string()), ['memory', 'notes']),
  envVars: z.array(hubEnvVar),
  readmeUrl: z.string().nullable(),
  featured: z.boolean(),
  installCount: withExample(z.number().int(), 3).describe('Number of libraries in this Berth that have it.'),
  version: like('1.0.0').nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
})
export type HubSkill = z.output<typeof hubSkill>

export const hubQuery = z.object({
  q: text(200).optional().describe('Words in its name, description or tags.'),
  category: text(64).optional(),
  sort: z
    .enum(['popular', 'newest', 'name'], 'must be popular, newest or name')
    .default('popular')
    .describe('Order: by number of installations, by age, or by name.'),
  featured: z.enum(['true', 'false'], 'must be true or false').optional(),
  cursor: text(1000).meta({ format: 'cursor' }).optional().describe('`nextCursor` of the previous page.'),
})
export type HubQuery = z.output<typeof hubQuery>

export const hubPage = z.object({ skills: z.array(hubSkill), nextCursor: z.string().nullable() })
export const hubDetail = z.object({ skill: hubSkill })
export const installed = z.object({ success: z.literal(true), skill: skillRecord })

/** A skill from one of the hub's sources. */
export interface HubEntry extends Omit<HubSkill, 'hubSkillId' | 'installCount'> {
  envVars: HubSkill['envVars'] & SkillRecord['envVars']
  /** The skill's files, unchecked if they come from outside. @throws BadSkill, ApiError */
  files(signal: AbortSignal): Promise<SkillFile[]>
}

export const noHubSkill = () => notFound('There is no such skill in the hub')
export const hubAway = (cause: unknown) =>
  new ApiError(503, 'hub_unavailable', 'The hub of skills does not answer', { cause })

/** Encodes the slug, so that id and slug convert into each other without a table. */
export const hubSkillId = (slug: string): string => Buffer.from(slug).toString('base64url')

/** The slug for a path that contains a slug or a skill id. @throws ApiError 404 if it is neither. */
export function slugOf(named: string): string {
  if (named.startsWith('@') && SKILL_NAME.test(named)) return named
  const decoded = Buffer.from(named, 'base64url').toString('utf8')
  if (SKILL_NAME.test(decoded) && hubSkillId(decoded) === named) return decoded
  if (SKILL_NAME.test(named)) return named
  throw noHubSkill()
}
