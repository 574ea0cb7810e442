import { z } from 'zod'
import { messages } from '../../errors.ts'
import { agentId, engineVersion, like, timestamp, withExample } from '../../http/fields.ts'
import { oneOrMore, optionalName, text } from '../../http/shapes.ts'
import { agentRecord, NAMES, names } from '../agent.ts'
import { gatewayStatus, scriptStates } from '../agentd-status.ts'
import { channelChangeOf } from '../channels/channel-schema.ts'
import { localModel } from '../models/model-schema.ts'
import { mappingList } from '../ports/port-route-schema.ts'
import { agentSecret } from '../secrets/secret-schema.ts'
import { agentSkill, MAX_ATTACHED } from '../skills/skill-schema.ts'
import { snapshot } from '../snapshots/index.ts'

/** `PATCH /v0/agents/{agentId}/platform/metadata`: absent fields stay unchanged. */
export const metadataChange = names
  .partial()
  .meta({ examples: [{ vibe: 'quiet and exact', emoji: '📚' }] })
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    `must have one of ${NAMES.join(', ')}`,
  )
  .meta(oneOrMore(...NAMES))
export type MetadataChange = z.output<typeof metadataChange>

export const metadataChanged = z.object({ success: z.literal(true), agent: agentRecord })

export const newAgent = names
  .partial()
  .required({ name: true })
  .extend({
    engine: z.literal('openclaw', 'must be openclaw').default('openclaw'),
    secretIds: z
      .array(text(64))
      .max(100, 'must have at most 100 items')
      .default([])
      .describe('Secrets of the workspace for the agent, from its first start.'),
    userName: optionalName(200).nullish().describe('The owner’s name, as the agent knows it.'),
    userEmail: text(320).nullish(),
    skillCids: z
      .array(text(512))
      .max(MAX_ATTACHED, `must have at most ${MAX_ATTACHED} items`)
      .nullish()
      .describe('Skills for the agent from its first start: CIDs in the library, or slugs.'),
    templateId: withExample(text(255).nullish(), 'assistant').describe(
      'A template, by its id or slug, whose files the agent starts with. Its description, vibe and ' +
        'emoji apply unless the body sets them.',
    ),
    localModel: localModel
      .nullish()
      .describe(
        'A model of a server on the agent’s own machine, as `findModels` has them. Its config begins with it, whatever the ' +
          'operator’s model is. Only where agents are processes.',
      ),
    channels: z
      .strictObject(channelChangeOf)
      .partial()
      .default({})
      .describe('Bodies of `configureChannel`, by channel.'),
  })
export type NewAgent = z.output<typeof newAgent>

export const created = z.object({ success: z.literal(true), agent: agentRecord })
export const notStarted = z.object({ error: like(messages.gatewayFailed), agent: agentRecord })

export const agentList = z.object({
  agents: z.array(agentRecord),
  agentLimit: like(10).nullable().describe('Agents that the plan allows; null for no limit.'),
  timeCredits: z.null(),
})

const processStatus = agentRecord.shape.status

const disk = z
  .object({
    usedBytes: like(14_155_776),
    limitBytes: like(10_737_418_240),
    hardLimit: z
      .boolean()
      .describe(
        'Whether the file system enforces the limit. If not, Berth measures about every ten seconds, and ' +
          'stops an agent that exceeds the limit.',
      ),
  })
  .nullable()
  .describe('Its workspace, engine state and home together. Null while the agent cannot be reached.')

export const agentDetail = z.object({
  agent: agentRecord,
  processStatus: processStatus.describe('Current state of the gateway.'),
  processId: like('31').nullable().describe('The gateway’s process id in its system.'),
  disk,
  skills: z.array(agentSkill),
  secrets: z.array(agentSecret),
  snapshots: z.array(snapshot).describe('The newest 10 snapshots, newest first.'),
  portForwarding: mappingList.shape.mappings,
})

export const agentStatus = z.object({
  agentId,
  status: processStatus,
  statusReason: agentRecord.shape.statusReason,
  engine: like('openclaw'),
  agentVersion: engineVersion,
  reachable: like(true).describe('Whether the agent’s supervisor responded.'),
  startedAt: timestamp.nullable().describe('When the supervisor started.'),
  gateway: gatewayStatus.omit({ run: true }).nullable(),
  scripts: scriptStates.nullable().describe('Null until the agent has started once.'),
  skillProblems: z
    .array(z.object({ name: z.string(), message: z.string() }))
    .describe('Attached skills that the agent did not have correctly when they were last written to it.'),
  disk,
})

export const deleted = z.object({
  message: like('Agent x7f3k2ab deleted'),
  wasInRegistry: like(true),
  r2ObjectsDeleted: z.number(),
})

export const restartBody = z
  .object({ version: withExample(z.string().max(100).nullish(), '2026.9.6') })
  .nullish()
export const restarted = z.object({
  message: like('Agent x7f3k2ab restarted'),
  previousProcessId: agentDetail.shape.processId,
})
export const restarting = restarted.omit({ previousProcessId: true })

export const launched = z.object({ message: like('Scripts launched') })

export const engines = z.object({
  engines: z.array(z.object({ id: like('openclaw'), label: like('OpenClaw') })),
})
const perEngine = z.record(z.string(), z.array(z.string()))
export const allVersions = z.object({
  availableVersions: withExample(z.array(z.string()), ['2026.9.6', '2026.9.5']).describe('Newest first.'),
  availableVersionsPerEngine: perEngine,
})
export const agentVersions = allVersions.extend({ engine: like('openclaw'), currentVersion: engineVersion })

export const update = z.object({
  currentVersion: engineVersion,
  latestVersion: engineVersion,
  updateAvailable: z.boolean(),
})
export const updateBody = z
  .object({ tag: withExample(z.string().max(100).nullish(), 'latest').describe('`latest`, or a version.') })
  .nullish()
export const updated = z.object({
  previousVersion: engineVersion,
  newVersion: engineVersion,
  output: like('Restarted on 2026.9.6'),
})
