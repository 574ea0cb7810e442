import { z } from 'zod'
import { badRequest, messages } from '../../errors.ts'
import { like, withExample } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import { startedOperation } from '../../operations/operation-route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { attachedSecrets, attachToAgent, detachSecret } from './attachments.ts'
import { conflictTable } from './conflicts.ts'
import { RESERVED_NAMES } from './reserved.ts'
import {
  agentSecret,
  attachment,
  nameFault,
  newSecret,
  secretChange,
  secretList,
  secretRecord,
} from './secret-schema.ts'
import { createSecret, deleteSecret, listSecrets, requireKey, updateSecret } from './secret-service.ts'

const TAG = 'Secrets'
const route = routesOf(TAG)
const agentRoute = agentRoutesOf(TAG)
const SECRETS = '/v0/secrets'
const ATTACHED = '/v0/agents/:agentId/secrets'
const success = z.literal(true)
const one = z.object({ success, secret: secretRecord })
const params = z.object({ id: pathId })

const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ')

/** The secrets of a workspace, and those of its agents (contract 4.3). */
export function secretRoutes({ prisma, encryption, operations }: AgentServices): Route[] {
  return [
    route({
      method: 'get',
      path: SECRETS,
      id: 'listSecrets',
      summary: 'List the secrets of the workspace',
      description: 'All secrets, newest first, with the agents that use them.',
      scope: 'org:agents:read',
      callers: ['workspace'],
      success: { description: 'The secrets, without their values.', body: secretList },
      async handle({ principal }) {
        const secrets = await listSecrets(prisma, encryption, principal.workspaceId)
        return { body: { secrets, secretLimit: principal.plan.secretLimit } }
      },
    }),
    route({
      method: 'post',
      path: SECRETS,
      id: 'createSecret',
      summary: 'Add a secret to the workspace',
      description:
        'Stored encrypted, and passed as an environment variable to the agents that it is attached to. With `hosts`, ' +
        'agents in containers and pods get a placeholder of the same shape instead, and the egress proxy inserts the ' +
        'value into their requests to these hosts. 400 ' +
        `for a name that the agents’ own programs need, 403 ${code([messages.secretLimit])}, 409 ` +
        `${code([messages.duplicateSecret])}, 503 ${code([messages.secretsNotConfigured])} if the operator ` +
        'has not configured secrets.\n\n**Reserved names** (`*` stands for any rest): ' +
        `${code(RESERVED_NAMES)}.`,
      scope: 'org:agents:write',
      callers: ['workspace'],
      body: newSecret,
      success: { status: 201, description: 'The secret.', body: one },
      errors: [409],
      async handle({ principal, body }) {
        const fault = nameFault(body.name)
        if (fault) throw badRequest(fault)
        return { body: { success: true, secret: await createSecret(prisma, encryption, principal, body) } }
      },
    }),
    route({
      method: 'put',
      path: `${SECRETS}/:id`,
      id: 'updateSecret',
      summary: 'Change the value of a secret, and its hosts',
      description:
        'A new value for the same `hosts` is used within a second. Otherwise agents get the change with their next ' +
        'restart; until then the secret is not `synced` in them. `hosts` cannot change without the value.',
      scope: 'org:agents:write',
      params,
      body: secretChange,
      success: { description: 'The secret.', body: one },
      errors: [404],
      async handle({ principal: { workspaceId }, params, body }) {
        const secret = await updateSecret(prisma, encryption, workspaceId, params.id, body)
        return { body: { success: true, secret } }
      },
    }),
    route({
      method: 'delete',
      path: `${SECRETS}/:id`,
      id: 'deleteSecret',
      summary: 'Delete a secret that no agent uses',
      description: '409 while it is attached; `Error-Detail` names the agents.',
      scope: 'org:agents:write',
      params,
      success: { description: 'Deleted.', body: z.object({ success }) },
      errors: [404, 409],
      async handle({ principal, params }) {
        await deleteSecret(prisma, principal.workspaceId, params.id)
        return { body: { success: true } }
      },
    }),
    agentRoute({
      method: 'get',
      path: ATTACHED,
      id: 'listAgentSecrets',
      summary: 'List the secrets of an agent',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: {
        description: 'The attached secrets, by name.',
        body: z.object({ secrets: z.array(agentSecret) }),
      },
      async handle({ agent }) {
        return { body: { secrets: await attachedSecrets(prisma, agent) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: ATTACHED,
      id: 'attachSecrets',
      summary: 'Attach secrets to an agent',
      description:
        'All of them or none. The agent gets them with its next restart. The first credential of a model provider ' +
        'restarts it at once: then the response contains that `operation`, and its id is in ' +
        `\`Operation-Id\`.\n\n**${messages.conflictingSecrets}** (409): an agent can have one credential per ` +
        `provider. ${conflictTable.map(([provider, names]) => `*${provider}*: ${code(names)}`).join('; ')}.`,
      // Closed to the agent's own tokens by default: its owner decides which secrets it gets.
      scope: 'org:agents:write',
      callers: ['widened'],
      body: attachment,
      success: {
        description: 'How many of the given secrets are attached now, which is all of them.',
        body: z.object({
          success,
          attached: withExample(z.number().int(), 1),
          message: like('The agent restarts to get them'),
          operation: startedOperation.optional(),
        }),
      },
      errors: [409],
      async handle({ agent, body, ...asked }) {
        requireKey(encryption)
        const { attached, operationId } = await attachToAgent(prisma, agent, body.secretIds)
        if (!operationId)
          return { body: { success: true, attached, message: 'The agent gets them with its next restart' } }
        const wait = { ...asked, waitMs: 0 }
        const { headers, operation } = await operations.started('agent.restart', operationId, wait)
        const message = 'The agent restarts to get them'
        return { headers, body: { success: true, attached, message, operation } }
      },
    }),
    agentRoute({
      method: 'delete',
      path: `${ATTACHED}/:secretId`,
      id: 'detachSecret',
      summary: 'Detach a secret from an agent',
      description:
        'Its running gateway keeps the value, or the placeholder, until the next restart. The egress proxy stops inserting ' +
        'the value within a second.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: z.object({ agentId: z.string(), secretId: pathId }),
      success: { description: 'Detached.', body: z.object({ success }) },
      async handle({ agent, params }) {
        await detachSecret(prisma, agent, params.secretId)
        return { body: { success: true } }
      },
    }),
  ]
}
