/** Hand-written SQL: joins with the newest version of each skill, and locks. */
import { isoMillis, narrow, statement } from './statement.ts'

/**
 * Sorts versions of a skill from the newest: releases by Semantic Versioning, then prereleases, then versions without a
 * number. Among equal versions, the last one written comes first.
 */
const rank = (version: string) => `skill_version_rank(${version}.version) COLLATE "C"`
const newestFirst = (version: string) => `${rank(version)} DESC, ${version}.id DESC`
/** Sorts by precedence only: a prerelease may be higher than a release. */
const precedence = (version: string) => `(substr(${rank(version)}, 2), ${version}.id)`

type Network = 'public' | 'private'
type EnvVar = { name: string; description?: string }

const SKILL = {
  skillId: 'uuid',
  skillCid: 'text',
  name: 'text',
  description: 'text?',
  version: 'text?',
  slug: 'text?',
  network: narrow<Network>('text'),
  createdAt: 'text',
  updatedAt: 'text',
  userId: 'uuid',
  envVars: narrow<EnvVar[]>('jsonb'),
  fileId: 'uuid?',
} as const
const SELECT_SKILL = `SELECT s.id AS "skillId", v.cid AS "skillCid", s.name, s.description, v.version, s.slug, v.network,
    ${isoMillis('s.created_at')} AS "createdAt", ${isoMillis('s.updated_at')} AS "updatedAt",
    s.user_id AS "userId", s.env_vars AS "envVars", v.file_id AS "fileId"
  FROM skill s CROSS JOIN LATERAL (
    SELECT * FROM skill_version own WHERE skill_id = s.id ORDER BY ${newestFirst('own')} LIMIT 1) v`

/** The library of a workspace (`$1`), newest first: `$3` of the skills older than `$2`. */
export const listSkillRows = statement({
  name: 'skill-list',
  parameters: ['uuid', 'uuid?', 'int8'],
  columns: SKILL,
  text: `${SELECT_SKILL}
    WHERE s.workspace_id = $1 AND s.id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
    ORDER BY s.id DESC LIMIT $3`,
})

/** A skill of a workspace by its id (`$2`), the CID of any of its versions (`$3`), or its slug (`$4`). */
export const findSkillRow = statement({
  name: 'skill-find',
  parameters: ['uuid', 'uuid?', 'text?', 'text?'],
  columns: SKILL,
  text: `${SELECT_SKILL} WHERE s.workspace_id = $1 AND (s.id = $2 OR s.slug = $4
    OR s.id = (SELECT skill_id FROM skill_version WHERE workspace_id = $1 AND cid = $3))`,
})

/** The skills of an agent, by name. */
export const attachedSkillRows = statement({
  name: 'skill-attached',
  parameters: ['uuid'],
  columns: {
    agentId: 'text',
    skillId: 'uuid',
    skillCid: 'text',
    attachedAt: 'text',
    name: 'text',
    description: 'text?',
    version: 'text?',
    slug: 'text?',
  },
  text: `SELECT a.agent_id AS "agentId", s.id AS "skillId", v.cid AS "skillCid",
      ${isoMillis('held.attached_at')} AS "attachedAt", s.name, s.description, v.version, s.slug
    FROM agent_skill held JOIN agent a ON a.id = held.agent_id JOIN skill s ON s.id = held.skill_id
      JOIN skill_version v ON v.id = held.version_id
    WHERE held.agent_id = $1 ORDER BY s.name`,
})

/** The versions of a skill (`$1`), newest first: `$3` of those after the version `$2`. */
export const listVersionRows = statement({
  name: 'skill-versions',
  parameters: ['uuid', 'uuid?', 'int8'],
  columns: {
    id: 'uuid',
    skillId: 'uuid',
    skillCid: 'text',
    version: 'text?',
    network: narrow<Network>('text'),
    fileId: 'uuid?',
    createdAt: 'text',
  },
  text: `SELECT v.id, v.skill_id AS "skillId", v.cid AS "skillCid", v.version, v.network, v.file_id AS "fileId",
      ${isoMillis('v.created_at')} AS "createdAt"
    FROM skill_version v LEFT JOIN skill_version last ON last.skill_id = v.skill_id AND last.id = $2
    WHERE v.skill_id = $1 AND ($2::uuid IS NULL OR (${rank('v')}, v.id) < (${rank('last')}, last.id))
    ORDER BY ${newestFirst('v')} LIMIT $3`,
})

/** The skills of an agent, by name, with the newest version of each, and whether it is newer than the agent's. */
export const readNewestVersions = statement({
  name: 'skill-newest',
  parameters: ['uuid'],
  columns: {
    skillId: 'uuid',
    name: 'text',
    skillCid: 'text',
    version: 'text?',
    latestSkillCid: 'text',
    latestVersion: 'text?',
    updateAvailable: 'bool',
  },
  text: `SELECT s.id AS "skillId", s.name, v.cid AS "skillCid", v.version, newest.cid AS "latestSkillCid",
      newest.version AS "latestVersion", ${precedence('newest')} > ${precedence('v')} AS "updateAvailable"
    FROM agent_skill held JOIN skill s ON s.id = held.skill_id JOIN skill_version v ON v.id = held.version_id
      CROSS JOIN LATERAL (
        SELECT * FROM skill_version own WHERE skill_id = s.id ORDER BY ${newestFirst('own')} LIMIT 1) newest
    WHERE held.agent_id = $1 ORDER BY s.name`,
})

/**
 * All versions in a workspace of the skills that the keys name (slugs, names or CIDs), newest version of each skill
 * first. They are locked as a reference would lock them, so that none is deleted before the commit.
 */
export const lockVersions = statement({
  name: 'skill-versions-lock',
  parameters: ['uuid', 'text[]'],
  columns: { skillId: 'uuid', name: 'text', slug: 'text?', versionId: 'uuid', cid: 'text' },
  text: `SELECT s.id AS "skillId", s.name, s.slug, v.id AS "versionId", v.cid
    FROM skill s JOIN skill_version v ON v.skill_id = s.id
    WHERE s.workspace_id = $1 AND (s.slug = ANY($2) OR s.name = ANY($2) OR v.cid = ANY($2))
    ORDER BY s.id, ${newestFirst('v')} FOR KEY SHARE`,
})

/** The version of a skill with this number (`$2`) or CID (`$3`); locked like {@link lockVersions}. */
export const lockVersion = statement({
  name: 'skill-version-lock',
  parameters: ['uuid', 'text?', 'text?'],
  columns: { id: 'uuid', cid: 'text' },
  text: `SELECT id, cid FROM skill_version
    WHERE skill_id = $1 AND (version = $2 OR cid = $3) FOR KEY SHARE`,
})
