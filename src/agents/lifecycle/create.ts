/** Creates an agent: its row, its attachments, and the operation that provisions it, in one transaction. */

import { uuidv7 } from 'uuidv7'
import { lock } from '../../db/advisory-locks.ts'
import { inTransaction, type Prisma, type Transaction } from '../../db/prisma.ts'
import { forbidden, messages, notFound } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import { newAgentId } from '../../lib/agent-id.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { manifestParts } from '../../openclaw/seed.ts'
import { enqueue, findRepeated, fingerprintOf } from '../../operations/enqueue.ts'
import { type Agent, findAgentById, givenNames, newGatewayToken } from '../agent.ts'
import type { AgentServices } from '../agent-route.ts'
import { CHANNELS } from '../channels/channel-schema.ts'
import { mergeChannel } from '../channels/channel-service.ts'
import { requireFreeTokens, writeChannel } from '../channels/channel-store.ts'
import { attachSecrets } from '../secrets/attachments.ts'
import { attachSkills } from '../skills/attach.ts'
import { adoptSpare, inputOf, type Spare } from '../spares.ts'
import type { Template } from '../templates/template.ts'
import { requireTemplate } from '../templates/template-store.ts'
import type { NewAgent } from './agent-schema.ts'

export interface Created {
  agent: Agent
  operationId: string
}

/**
 * Creates an agent in the caller's workspace. Creations in one workspace run one at a time, so that none exceeds the
 * limit, and a repeat with the same idempotency key finds the first result.
 * @throws ApiError 403 at the plan's limit. 400 for incomplete channels. 404 or 409 for secrets and skills that cannot
 *   be attached. 404 for a template that does not exist or was archived, or if the agent created under the key was
 *   deleted. 422 if the key was used for another request.
 */
export async function createAgent(
  { prisma, encryption, config }: Pick<AgentServices, 'prisma' | 'encryption' | 'config'>,
  caller: Principal,
  input: NewAgent,
  options: { engineVersion: string; idempotencyKey?: string | undefined },
): Promise<Created> {
  const { idempotencyKey } = options
  const request = `agent.provision ${JSON.stringify(input)}`
  const made = await inTransaction(prisma, async (tx) => {
    await lock(tx, 'newAgent', caller.workspaceId)
    const repeated = idempotencyKey && (await findCreated(tx, caller, idempotencyKey, request))
    if (repeated) return repeated
    if ((await agentsLeft(tx, caller)) < 1) throw forbidden(messages.agentLimit, 'agent_limit')
    // Locks the template until the agent exists, so that archiving it then notices that it is needed.
    const template =
      input.templateId == null
        ? undefined
        : await requireTemplate(tx, caller.workspaceId, input.templateId, 'either', 'use')
    // Channels need a gateway of their own: a spare would be restarted.
    const hasChannels = Object.keys(input.channels).length > 0
    const { engineVersion } = options
    const spare = hasChannels ? undefined : await adoptSpare(tx, config, { engineVersion, plan: caller.plan })
    const agent = await insertAgent(tx, caller, input, { engineVersion, template, spare })
    await attachSecrets(tx, agent, input.secretIds)
    await attachSkills(tx, agent, input.skillCids ?? [])
    for (const channel of CHANNELS) {
      const change = input.channels[channel]
      if (!change) continue
      const merged = mergeChannel(channel, undefined, change)
      await requireFreeTokens(tx, encryption, agent, channel, change)
      await writeChannel(tx, encryption, agent, merged)
    }
    const operationId = await enqueue(tx, 'agent.provision', agent, {
      idempotencyKey,
      request,
      input: inputOf(spare),
    })
    crashPoint('before-commit')
    return { agent, operationId }
  })
  crashPoint('after-commit')
  return made
}

/** How many agents the caller's plan still allows. */
export async function agentsLeft(tx: Transaction, { workspaceId, plan }: Principal): Promise<number> {
  if (plan.agentLimit === null) return Number.POSITIVE_INFINITY
  return plan.agentLimit - (await tx.agent.count({ where: { workspaceId, deletedAt: null } }))
}

async function insertAgent(
  tx: Transaction,
  { workspaceId, userId }: Principal,
  input: NewAgent,
  options: { engineVersion: string; template: Template | undefined; spare: Spare | undefined },
): Promise<Agent> {
  const { engineVersion, template, spare } = options
  const { name, userName = null, userEmail = null, engine } = input
  const { description = null, defaultVibe = null, defaultEmoji = null } = template?.details ?? {}
  const names = {
    ...{ description, vibe: defaultVibe, emoji: defaultEmoji },
    // Values of the request, including nulls, take precedence over the template's.
    ...givenNames(input),
    name,
  }
  const data = {
    workspaceId,
    userId,
    ...names,
    userName,
    userEmail,
    engine,
    engineVersion,
    templateId: template?.id ?? null,
    // A template's manifest is applied once the agent runs.
    ...(!template && { manifest: JSON.stringify(manifestParts(names)) }),
    ...(input.localModel && { localModel: input.localModel }),
  }
  return insertStarting(tx, data, spare)
}

/** Inserts a starting agent, with the ids of a spare or new ones. */
export async function insertStarting(
  tx: Transaction,
  data: Omit<Prisma.AgentCreateManyInput, 'id' | 'agentId' | 'gatewayToken' | 'status'>,
  spare?: Spare,
): Promise<Agent> {
  const id = uuidv7()
  for (;;) {
    const ids = spare?.columns ?? { agentId: newAgentId(), gatewayToken: newGatewayToken() }
    await tx.agent.createMany({ data: { ...data, id, status: 'starting', ...ids }, skipDuplicates: true })
    const agent = await findAgentById(tx, id)
    if (agent) return agent
  }
}

/**
 * The agent created by an earlier request under this key. @throws ApiError 404 if it was deleted, 422 for another
 * request.
 */
export async function findCreated(
  tx: Transaction,
  { workspaceId }: Principal,
  key: string,
  request: string,
): Promise<Created | undefined> {
  const repeated = await findRepeated(tx, { workspaceId, key, fingerprint: fingerprintOf(request) })
  if (!repeated) return undefined
  const agent = await findAgentById(tx, repeated.targetId)
  if (!agent) throw notFound('The agent that this Idempotency-Key made was deleted')
  return { agent, operationId: repeated.operationId }
}
