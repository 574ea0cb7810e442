/** Making an agent: its row, what is attached to it, and the operation that brings it up, in one transaction. */
import { uuidv7 } from 'uuidv7'
import type { Principal } from '../../accounts/authenticator.ts'
import { crashPoint } from '../../crash-point.ts'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { forbidden, messages, notFound } from '../../errors.ts'
import { findRepeated, fingerprintOf } from '../../operations/idempotency.ts'
import type { Sealer } from '../../sealer.ts'
import { AGENT_COLUMNS, type Agent, findAgentById, newAgentId, newGatewayToken } from '../agent.ts'
import { CHANNELS } from '../channels/schema.ts'
import { mergeChannel } from '../channels/service.ts'
import { writeChannel } from '../channels/store.ts'
import { insertOperation } from '../operate.ts'
import { attachSecrets } from '../secrets/attachments.ts'
import { attachSkills } from '../skills/attach.ts'
import { requireTemplate } from '../templates/store.ts'
import type { Template } from '../templates/template.ts'
import type { NewAgent } from './schema.ts'

export interface Created {
  agent: Agent
  operationId: string
}

/**
 * Makes an agent of the caller's workspace. One create of a workspace runs at a time: so none gets past the limit,
 * and a repeat with the same idempotency key finds what the first one made.
 * @throws ApiError 403 at the plan's limit; 400 for channels without what they need; 404 or 409 for secrets and skills
 *   that cannot be attached; 404 for a template that is not there or was archived, and when what the key made was
 *   deleted; 422 for a known key with another request.
 */
export async function createAgent(
  { pool, sealer }: { pool: Pool; sealer: Sealer },
  caller: Principal,
  input: NewAgent,
  options: { engineVersion: string; idempotencyKey?: string | undefined },
): Promise<Created> {
  const { idempotencyKey } = options
  const request = `agent.provision ${JSON.stringify(input)}`
  const made = await transaction(pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 2))', [caller.workspaceId])
    const repeated = idempotencyKey && (await findCreated(client, caller, idempotencyKey, request))
    if (repeated) return repeated
    await requireRoom(client, caller)
    // It stays until the agent is there: whoever archives it then sees that it is needed.
    const template =
      input.templateId == null
        ? undefined
        : await requireTemplate(client, caller.workspaceId, input.templateId, 'either', 'FOR SHARE')
    const agent = await insertAgent(client, caller, input, { ...options, template })
    await attachSecrets(client, agent, input.secretIds)
    await attachSkills(client, agent, input.skillCids ?? [])
    for (const channel of CHANNELS) {
      const settings = input.channels[channel]
      if (settings) await writeChannel(client, sealer, agent, mergeChannel(channel, undefined, settings))
    }
    const operationId = await insertOperation(client, agent, 'agent.provision', { idempotencyKey, request })
    crashPoint('before-commit')
    return { agent, operationId }
  })
  crashPoint('after-commit')
  return made
}

async function requireRoom(db: Queryable, { workspaceId, plan }: Principal): Promise<void> {
  if (plan.agentLimit === null) return
  const { rows } = await db.query(
    'SELECT count(*)::int AS count FROM agent WHERE workspace_id = $1 AND deleted_at IS NULL',
    [workspaceId],
  )
  if (rows[0].count >= plan.agentLimit) throw forbidden(messages.agentLimit, 'agent_limit')
}

async function insertAgent(
  db: Queryable,
  { workspaceId, userId }: Principal,
  input: NewAgent,
  { engineVersion, template }: { engineVersion: string; template: Template | undefined },
): Promise<Agent> {
  const { name, userName, userEmail, engine } = input
  const { description, defaultVibe, defaultEmoji } = template?.details ?? {}
  for (;;) {
    const { rows } = await db.query(
      `INSERT INTO agent (id, agent_id, workspace_id, user_id, name, description, vibe, emoji, user_name, user_email,
         engine, engine_version, gateway_token, template_id, status)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'starting')
       ON CONFLICT (agent_id) DO NOTHING RETURNING ${AGENT_COLUMNS}`,
      [
        uuidv7(),
        newAgentId(),
        workspaceId,
        userId,
        name,
        orElse(input.description, description),
        orElse(input.vibe, defaultVibe),
        orElse(input.emoji, defaultEmoji),
        userName ?? null,
        userEmail ?? null,
        engine,
        engineVersion,
        newGatewayToken(),
        template?.id ?? null,
      ],
    )
    if (rows[0]) return rows[0]
  }
}

/** What the request says, also where that is null; else what the template has. */
const orElse = (given: string | null | undefined, fallback: string | null | undefined): string | null =>
  given === undefined ? (fallback ?? null) : given

/** What a request under this key made before. @throws ApiError 404 when that was deleted, 422 for another request. */
async function findCreated(
  db: Queryable,
  { workspaceId }: Principal,
  key: string,
  request: string,
): Promise<Created | undefined> {
  const repeated = await findRepeated(db, { workspaceId, key, fingerprint: fingerprintOf(request) })
  if (!repeated) return undefined
  const agent = await findAgentById(db, repeated.targetId)
  if (!agent) throw notFound('The agent that this Idempotency-Key made was deleted')
  return { agent, operationId: repeated.operationId }
}
