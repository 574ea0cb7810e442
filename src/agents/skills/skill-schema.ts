import { z } from 'zod'
import { agentId, contentCid, EXAMPLE_CID, like, timestamp, userId, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'

/** Maximum number of skills per agent (contract 8). */
export const MAX_ATTACHED = 10
const MAX_ENV_VARS = 50
const MAX_VERSION = 64

/** `name`, or `@owner/name`: the folder of the skill in an agent, below its `skills`. */
export const SKILL_NAME = /^(@[A-Za-z0-9_-]{1,64}\/)?[A-Za-z0-9_-]{1,64}$/

/** Semantic Versioning 2.0.0. */
export const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*)?(\+[\dA-Za-z-]+(\.[\dA-Za-z-]+)*)?$/

const skillId = like('0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19').describe(
  'The skill’s id in the library, the same for all its versions.',
)
const skillCid = contentCid.describe('Its folder on IPFS, as CIDv1.')
const version = like('1.2.0').nullable().describe('Semantic version, if the skill names one.')
const slug = z.string().nullable().describe('`@owner/name` if it came from the hub.')

const envVar = z.object({
  name: withExample(text(128), 'INVOICE_API_KEY').regex(
    /^[A-Za-z_][A-Za-z0-9_]*$/,
    'must be the name of an environment variable',
  ),
  description: text(1000).optional(),
})
export type EnvVar = z.output<typeof envVar>

/** A skill in the library of a workspace; `skillCid`, `version` and `fileId` describe its newest version. */
export const skillRecord = z.object({
  skillId,
  skillCid,
  name: like('invoices'),
  description: like('Write invoices from the price list.').nullable(),
  version,
  slug,
  network: z.enum(['public', 'private']),
  createdAt: timestamp,
  updatedAt: timestamp,
  userId,
  envVars: z.array(envVar).describe('Environment variables that it reads, for people who attach secrets.'),
  fileId: z.string().nullable().describe('The file of the workspace with the same content.'),
})
export type SkillRecord = z.output<typeof skillRecord>

export const versionRecord = z.object({
  skillId,
  skillCid,
  version,
  network: z.enum(['public', 'private']),
  fileId: z.string().nullable(),
  createdAt: timestamp,
})
export type VersionRecord = z.output<typeof versionRecord>

/** A skill of an agent. */
export const agentSkill = z.object({
  agentId,
  skillId,
  skillCid: skillCid.describe('The attached version.'),
  attachedAt: timestamp,
  name: like('invoices'),
  description: like('Write invoices from the price list.').nullable(),
  version,
  slug,
})
export type AgentSkill = z.output<typeof agentSkill>

const cidText = withExample(text(512), EXAMPLE_CID).min(1, 'must not be empty').meta({ format: 'cid' })
const versionText = text(MAX_VERSION).regex(SEMVER, 'must be a semantic version, as 1.2.3')
const fileId = z.uuid('must be the id of a file').toLowerCase()

export const newSkill = z.object({
  skillCid: cidText.describe('CID of a folder with SKILL.md.'),
  name: withExample(text(130), 'invoices')
    .regex(SKILL_NAME, 'must have letters, digits, - and _ only, at most 64; or be @owner/name of such')
    .describe('Its folder in agents.'),
  description: text(10_000).optional().describe('Taken from SKILL.md if not given.'),
  envVars: z.array(envVar).max(MAX_ENV_VARS, `must have at most ${MAX_ENV_VARS} items`).default([]),
  fileId: fileId.optional().describe('A file of the workspace with this content.'),
})

export const newVersion = z.object({
  skillCid: cidText,
  version: versionText.optional().describe('Taken from SKILL.md if not given.'),
  fileId: fileId.optional(),
})

export const attachment = z.object({
  skillCids: z
    .array(withExample(text(512), '@berth/journal').min(1, 'must not be empty').meta({ format: 'skill' }))
    .min(1, 'must not be empty')
    .max(MAX_ATTACHED, `an agent can have at most ${MAX_ATTACHED} skills`)
    .describe('CIDs of skills in the library, or slugs (`@owner/name`).'),
})

const resolution = z
  .enum(['replace', 'keep'], 'must be replace or keep')
  .describe(
    '`replace`: the agent’s changes in the folder are lost. `keep`: the folder stays as the agent has ' +
      'it, and counts as this version.',
  )
export type Resolution = z.output<typeof resolution>

export const skillUpdate = z
  .object({
    version: versionText.optional().describe('The wanted version; the newest if neither is given.'),
    skillCid: cidText.optional().describe('The wanted version by its CID.'),
    expectedSkillCid: cidText
      .optional()
      .describe('The version that the caller believes is attached: 409 if another one is.'),
    resolution: resolution.optional(),
  })
  .meta({ examples: [{ expectedSkillCid: EXAMPLE_CID, resolution: 'replace' }] })
  .refine(({ version, skillCid }) => version === undefined || skillCid === undefined, {
    path: ['version'],
    message: 'cannot be given beside skillCid',
  })
  .optional()
export type SkillUpdate = NonNullable<z.output<typeof skillUpdate>>

export const skillUpdates = z.object({
  agentId,
  updates: z.array(
    z.object({
      skillId,
      name: like('invoices'),
      skillCid: contentCid.describe('The attached version.'),
      version,
      latestSkillCid: contentCid,
      latestVersion: version,
      updateAvailable: z.boolean(),
      folder: z
        .enum(['same', 'modified', 'other', 'missing'])
        .nullable()
        .describe(
          'State of its folder in the agent: `modified`, the agent has changed it; `other`, it is another version ' +
            'or has another origin, in conflict; `missing`. Null while the agent does not respond.',
        ),
    }),
  ),
})

export const applied = z.object({ message: like('The agent has it') })
export const attached = applied.extend({
  attached: withExample(z.number().int(), 2).describe(
    'How many of the given skills are attached now, which is all of them.',
  ),
})
export const updated = applied.extend({ skill: agentSkill })
