import { ApiError, notFound } from '../../errors.ts'
import type { SkillFile } from '../skills/files.ts'
import { SKILL_NAME, type SkillRecord } from '../skills/schema.ts'
import type { HubSkill } from './schema.ts'

/** A skill that a source of the hub has. */
export interface HubEntry extends Omit<HubSkill, 'hubSkillId' | 'installCount'> {
  envVars: HubSkill['envVars'] & SkillRecord['envVars']
  /** Its files, unchecked where they come from outside. @throws BadSkill, ApiError */
  files(signal: AbortSignal): Promise<SkillFile[]>
}

export const noHubSkill = () => notFound('There is no such skill in the hub')
export const hubAway = (cause: unknown) =>
  new ApiError(503, 'hub_unavailable', 'The hub of skills does not answer', { cause })

/** The id of a skill in the hub stands for its slug, so that one finds the other without a table. */
export const hubSkillId = (slug: string): string => Buffer.from(slug).toString('base64url')

/** The slug that a path names by itself or by the skill's id. @throws ApiError 404 where it is neither. */
export function slugOf(named: string): string {
  if (named.startsWith('@') && SKILL_NAME.test(named)) return named
  const decoded = Buffer.from(named, 'base64url').toString('utf8')
  if (SKILL_NAME.test(decoded) && hubSkillId(decoded) === named) return decoded
  if (SKILL_NAME.test(named)) return named
  throw noHubSkill()
}
