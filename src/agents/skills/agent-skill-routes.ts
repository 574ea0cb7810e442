import { z } from 'zod'
import type { Transaction } from '../../db/prisma.ts'
import type { Route } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import type { Agent } from '../agent.ts'
import { type AgentServices, agentOperationRoutes, agentRoutesOf } from '../agent-route.ts'
import { installMissing } from '../clawhub/install.ts'
import { applyChange, failure } from './apply.ts'
import { attachedSkills, attachSkills, detachSkill, requireAttached } from './attach.ts'
import { readSkillFolders } from './skill-folders.ts'
import {
  type AgentSkill,
  agentSkill,
  applied,
  attached,
  attachment,
  MAX_ATTACHED,
  skillUpdate,
  skillUpdates,
  updated,
} from './skill-schema.ts'
import { changeVersion, findUpdates } from './update.ts'

const TAG = 'Skills'
const agentRoute = agentRoutesOf(TAG)
const AGENT = '/v0/agents/:agentId'
const ATTACHED = `${AGENT}/skills`
const params = z.object({ agentId: z.string(), skillId: pathId })
const LATER = 'Berth has recorded the change; the agent gets it when its current work has ended.'
const WRITTEN = {
  done: 'The agent has it',
  atStart: 'The agent has it when it starts',
  waiting: 'It is written to the agent; see the operation',
}
const REMOVED = {
  done: 'The agent no longer has it',
  atStart: 'The agent loses it when it starts',
  waiting: 'It is removed from the agent; see the operation',
}

/** The skills of an agent (contract 4.3). */
export function agentSkillRoutes(services: AgentServices): Route[] {
  const { pool, prisma, agentd, operations } = services
  const operationRoute = agentOperationRoutes(operations, TAG)
  /** Undefined if the agent does not respond. */
  const foldersOf = (agent: Agent, signal: AbortSignal) =>
    readSkillFolders(agentd, agent, signal).catch(() => undefined)
  return [
    agentRoute({
      method: 'get',
      path: ATTACHED,
      aliases: [`${AGENT}/platform/skills/attached`],
      id: 'listAgentSkills',
      summary: 'List the skills of an agent',
      description: 'By name. In addition, every agent has `@berth/platform`, which it uses to talk to Berth.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'The skills.', body: z.object({ skills: z.array(agentSkill) }) },
      async handle({ agent }) {
        return { body: { skills: await attachedSkills(pool, agent) } }
      },
    }),
    operationRoute('agent.skills', {
      method: 'post',
      path: ATTACHED,
      id: 'attachSkills',
      summary: 'Attach skills to an agent',
      description:
        'All of them or none. Hub slugs that the library lacks are installed first, unless ' +
        'the agent itself asks. The folder appears below `skills`, and the engine sees ' +
        `it without a restart. 400 for more than ${MAX_ATTACHED} skills; 404 for a skill ` +
        'that is not in the library.\n\n**Skill version conflict** (409): another version ' +
        'of the skill is attached, or the agent has created or changed a folder of that ' +
        'name. In the latter case the skill is attached, the folder stays, and `POST ' +
        '…/skills/{skillId}/update` with a `resolution` decides what happens to it. ' +
        '`skillProblems` in the agent’s status lists conflicts of other skills.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: attachment,
      success: { description: 'The skills are attached.', body: attached },
      pending: { description: LATER },
      failure,
      errors: [409, 507],
      async begin({ principal, agent, body, idempotencyKey, signal }) {
        const { skillCids } = body
        // An agent may follow a stranger's instructions, so its token adds nothing to the workspace's library.
        if (!principal.agent) await installMissing(services, agent, skillCids, signal)
        const change = {
          make: (tx: Transaction) => attachSkills(tx, agent, skillCids),
          current: async () => [...new Set(skillCids)],
          names: (attached: string[]) => attached,
          body: ({ length }: string[]) => ({ attached: length }),
          messages: WRITTEN,
          request: `attach ${JSON.stringify(skillCids)}`,
        }
        return applyChange(prisma, agent, change, idempotencyKey)
      },
    }),
    operationRoute('agent.skills', {
      method: 'delete',
      path: `${ATTACHED}/:skillId`,
      id: 'detachSkill',
      summary: 'Detach a skill from an agent',
      description: 'Deletes its folder, including the agent’s changes in it; the library keeps the skill.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      success: { description: 'The skill is detached.', body: applied },
      pending: { description: LATER },
      failure,
      async begin({ agent, params, idempotencyKey }) {
        const change = {
          make: (tx: Transaction) => detachSkill(tx, agent, params.skillId),
          current: async () => '',
          names: (detached: string) => [detached],
          body: () => ({}),
          messages: REMOVED,
          request: `detach ${params.skillId}`,
        }
        return applyChange(prisma, agent, change, idempotencyKey)
      },
    }),
    agentRoute({
      method: 'get',
      path: `${ATTACHED}/updates`,
      id: 'listSkillUpdates',
      summary: 'List newer versions of the skills of an agent',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'Each skill of the agent.', body: skillUpdates },
      async handle({ agent, signal }) {
        const folders = await foldersOf(agent, signal)
        return { body: { agentId: agent.agentId, updates: await findUpdates(pool, agent, folders) } }
      },
    }),
    operationRoute('agent.skills', {
      method: 'post',
      path: `${ATTACHED}/:skillId/update`,
      id: 'updateSkill',
      summary: 'Give an agent another version of a skill',
      description:
        'Without a body the agent gets the newest version in the library, but never a lower one than it ' +
        'has. To go back, name an older version.\n\n**Skill version conflict** (409): `expectedSkillCid` ' +
        'is not the attached version, or the agent has changed the folder and `resolution` does not say ' +
        'what to do with it. Nothing changes then.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      body: skillUpdate,
      success: { description: 'The skill as attached now.', body: updated },
      pending: { description: LATER },
      failure,
      errors: [409],
      async begin({ agent, params: { skillId }, body = {}, idempotencyKey, signal }) {
        const folders = await foldersOf(agent, signal)
        const change = {
          make: (tx: Transaction) => changeVersion(tx, agent, skillId, body, folders),
          current: (tx: Transaction) => requireAttached(tx, agent, skillId),
          names: ({ name }: AgentSkill) => [name],
          body: (skill: AgentSkill) => ({ skill }),
          messages: WRITTEN,
          resolution: body.resolution,
          request: `update ${skillId} ${JSON.stringify(body)}`,
        }
        return applyChange(prisma, agent, change, idempotencyKey)
      },
    }),
  ]
}
