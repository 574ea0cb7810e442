import { z } from 'zod'
import type { Transaction } from '../../db/prisma.ts'
import type { Route } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import type { Agent } from '../agent.ts'
import { type AgentServices, agentRoute } from '../agent-route.ts'
import { installMissing } from '../clawhub/install.ts'
import { applyChange } from './apply.ts'
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
const AGENT = '/v0/agents/:agentId'
const ATTACHED = `${AGENT}/skills`
const params = z.object({ agentId: z.string(), skillId: pathId })
const LATER = 'It is done for Berth; the agent gets it when what it does now has ended.'
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
  const { pool, agentd } = services
  /** Undefined where the agent does not answer. */
  const foldersOf = (agent: Agent, signal: AbortSignal) =>
    readSkillFolders(agentd, agent, signal).catch(() => undefined)
  return [
    agentRoute({
      method: 'get',
      path: ATTACHED,
      aliases: [`${AGENT}/platform/skills/attached`],
      id: 'listAgentSkills',
      tag: TAG,
      summary: 'List the skills of an agent',
      description: 'By name. Beside these, every agent has `@berth/platform`, by which it speaks to Berth.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { status: 200, description: 'The skills.', body: z.object({ skills: z.array(agentSkill) }) },
      async handle({ agent }) {
        return { body: { skills: await attachedSkills(pool, agent) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: ATTACHED,
      id: 'attachSkills',
      tag: TAG,
      summary: 'Attach skills to an agent',
      description:
        'All of them or none. A slug of the hub that is not in the library is installed first, unless it is the agent ' +
        'that asks. The agent finds the ' +
        `folder below \`skills\`, and its engine sees it without a restart. An agent has at most ${MAX_ATTACHED}: ` +
        '400; what is not in the library: 404.\n\n' +
        '**Skill version conflict** (409): another version of the skill is attached, or the agent has a folder of ' +
        'that name which it made or changed. In the latter case the skill is attached, the folder stays, and ' +
        '`POST …/skills/{skillId}/update` with a `resolution` says what becomes of it. Conflicts of other skills are ' +
        'in `skillProblems` of the agent’s status.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: attachment,
      success: { status: 200, description: 'They are attached.', body: attached },
      otherSuccess: { status: 202, description: LATER, body: attached },
      errors: [409, 507],
      operation: true,
      async handle({ principal, agent, body, signal, ...options }) {
        const { skillCids } = body
        // An agent may act on a stranger's words: its token adds nothing to the workspace's library.
        if (!principal.agent) await installMissing(services, agent, skillCids, signal)
        const change = {
          make: (tx: Transaction) => attachSkills(tx, agent, skillCids),
          current: async () => [...new Set(skillCids)],
          names: (attached: string[]) => attached,
          messages: WRITTEN,
          request: `attach ${JSON.stringify(skillCids)}`,
        }
        const { changed, status, headers, ...said } = await applyChange(services, agent, change, {
          ...options,
          principal,
          signal,
        })
        return { status, headers, body: { success: true, attached: changed.length, ...said } }
      },
    }),
    agentRoute({
      method: 'delete',
      path: `${ATTACHED}/:skillId`,
      id: 'detachSkill',
      tag: TAG,
      summary: 'Detach a skill from an agent',
      description: 'Its folder goes, with what the agent changed in it; the library keeps the skill.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      success: { status: 200, description: 'It is detached.', body: applied },
      otherSuccess: { status: 202, description: LATER, body: applied },
      operation: true,
      async handle({ agent, params, ...options }) {
        const change = {
          make: (tx: Transaction) => detachSkill(tx, agent, params.skillId),
          current: async () => '',
          names: (detached: string) => [detached],
          messages: REMOVED,
          request: `detach ${params.skillId}`,
        }
        const { changed: _, status, headers, ...said } = await applyChange(services, agent, change, options)
        return { status, headers, body: { success: true, ...said } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${ATTACHED}/updates`,
      id: 'listSkillUpdates',
      tag: TAG,
      summary: 'List newer versions of the skills of an agent',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { status: 200, description: 'Each skill of the agent.', body: skillUpdates },
      async handle({ agent, signal }) {
        const folders = await foldersOf(agent, signal)
        return { body: { agentId: agent.agentId, updates: await findUpdates(pool, agent, folders) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${ATTACHED}/:skillId/update`,
      id: 'updateSkill',
      tag: TAG,
      summary: 'Give an agent another version of a skill',
      description:
        'Without a body the agent gets the newest version in the library, and never a lower one than it has. To go back, ' +
        'name an older one.\n\n' +
        '**Skill version conflict** (409): `expectedSkillCid` is not the version that is attached, or the agent has ' +
        'changed its folder, and `resolution` does not say what becomes of that. Nothing is changed then.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      body: skillUpdate,
      success: { status: 200, description: 'The skill as it is attached now.', body: updated },
      otherSuccess: { status: 202, description: LATER, body: updated },
      errors: [409],
      operation: true,
      async handle({ agent, params: { skillId }, body = {}, signal, ...options }) {
        const folders = await foldersOf(agent, signal)
        const change = {
          make: (tx: Transaction) => changeVersion(tx, agent, skillId, body, folders),
          current: (tx: Transaction) => requireAttached(tx, agent, skillId),
          names: ({ name }: AgentSkill) => [name],
          messages: WRITTEN,
          resolution: body.resolution,
          request: `update ${skillId} ${JSON.stringify(body)}`,
        }
        const { changed, status, headers, ...said } = await applyChange(services, agent, change, {
          ...options,
          signal,
        })
        return { status, headers, body: { success: true, skill: changed, ...said } }
      },
    }),
  ]
}
