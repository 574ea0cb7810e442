import { z } from 'zod'
import type { Core } from '../core.ts'
import type { AgentRow } from '../db/statements/agents.ts'
import { readModelAgent, setModelPause } from '../db/statements/models.ts'
import { like, timestamp, userId, withExample } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { FALLBACK_PROVIDER, LOCAL_PROVIDER, OPERATOR_PROVIDER } from '../model-providers.ts'
import { budgetChange, budgetRecord, changeBudget, readBudget, type Subject } from './budgets.ts'
import { PAUSED } from './refusals.ts'
import type { Sessions } from './sessions.ts'

const TAG = 'Models'
const route = routesOf(TAG)
const agentRoute = routesOf<{ agent: AgentRow }>(TAG)

const budgetBody = z.object({ data: budgetRecord })
const stateBody = z.object({
  data: z.object({
    paused: z.object({ at: timestamp, by: userId.nullable() }).nullable(),
    providers: z
      .array(
        z.object({
          id: like('openai'),
          dialect: z.enum(['openai', 'anthropic', 'google']),
          source: withExample(z.enum(['operator', 'local', 'secret']), 'secret').describe(
            '`local`: a server on the agent’s machine. `secret`: an attached secret has the key.',
          ),
        }),
      )
      .describe('The providers that the agent can call through the model gateway.'),
    budget: budgetRecord,
    refusal: z
      .object({
        code: like('budget_exceeded'),
        message: like('Budget spent: $5.00 per month for this agent.'),
      })
      .nullable()
      .describe('Why the next call of a model would be refused; null if it would not.'),
  }),
})
const ADMIN_ONLY =
  'Only owners may do so, with a key that has `admin`, or in a session. No agent’s token is accepted.'

const SOURCES: Record<string, string> = {
  [OPERATOR_PROVIDER]: 'operator',
  [FALLBACK_PROVIDER]: 'operator',
  [LOCAL_PROVIDER]: 'local',
}

/** Budgets, the state of an agent's models, and their kill switch. */
export function budgetRoutes({ pool, prisma }: Core, sessions: Sessions): Route[] {
  const ofWorkspace = ({ workspaceId }: { workspaceId: string }): Subject => ({ workspaceId, agentId: null })
  const ofAgent = ({ id, workspaceId }: AgentRow): Subject => ({ workspaceId, agentId: id })
  const show = async (subject: Subject) => ({ body: { data: await readBudget(pool, subject) } })
  const change = async (subject: Subject, body: z.output<typeof budgetChange> | null) => {
    await changeBudget(prisma, subject, body)
    return show(subject)
  }
  const state = async (agent: AgentRow) => {
    const { pausedAt, pausedBy, secrets } = await readModelAgent.one(pool, agent.id)
    const budget = await readBudget(pool, ofAgent(agent))
    const ofAll = await readBudget(pool, ofWorkspace(agent))
    const spent = [budget, ofAll].some(({ state }) => state === 'spent')
    const message = `The budget ${budget.state === 'spent' ? 'of this agent' : 'of its workspace'} is spent`
    const refused = spent ? { code: 'budget_exceeded', message } : null
    const { code, message: paused } = PAUSED
    const providers = sessions.providersOf({ localModel: agent.localModel, secrets })
    const sourceOf = (id: string) => SOURCES[id] ?? 'secret'
    return {
      body: {
        data: {
          paused: pausedAt && { at: pausedAt, by: pausedBy },
          providers: providers.map(({ id, dialect }) => ({ id, dialect, source: sourceOf(id) })),
          budget,
          refusal: pausedAt ? { code, message: paused } : refused,
        },
      },
    }
  }
  const success = { description: 'The budget.', body: budgetBody }
  const ofState = { description: 'The state.', body: stateBody }
  return [
    route({
      method: 'get',
      path: '/v0/model/budget',
      id: 'getModelBudget',
      summary: 'Get the budget for models of all agents of the workspace',
      scope: 'org:agents:read',
      success,
      handle: ({ principal }) => show(ofWorkspace(principal)),
    }),
    route({
      method: 'put',
      path: '/v0/model/budget',
      id: 'setModelBudget',
      summary: 'Replace the budget for models of all agents of the workspace',
      description: `The change applies within about a second. ${ADMIN_ONLY}`,
      scope: 'admin',
      role: 'owner',
      body: budgetChange,
      success,
      handle: ({ principal, body }) => change(ofWorkspace(principal), body),
    }),
    route({
      method: 'delete',
      path: '/v0/model/budget',
      id: 'removeModelBudget',
      summary: 'Remove the budget for models of all agents of the workspace',
      description: `The budgets of its agents stay. ${ADMIN_ONLY}`,
      scope: 'admin',
      role: 'owner',
      success,
      handle: ({ principal }) => change(ofWorkspace(principal), null),
    }),
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/model',
      id: 'getAgentModel',
      summary: 'Get the state of an agent’s models: providers, budget and pause',
      scope: 'org:agents:read',
      success: ofState,
      handle: ({ agent }) => state(agent),
    }),
    ...(['pause', 'resume'] as const).map((action) =>
      agentRoute({
        method: 'post',
        path: `/v0/agents/:agentId/model/${action}`,
        id: `${action}AgentModel`,
        summary: action === 'pause' ? 'Stop an agent from calling models' : 'Let an agent call models again',
        description:
          action === 'pause'
            ? 'Calls are refused at once, and calls in progress are cut within about a second. The agent keeps running.'
            : 'It succeeds too if the agent is not paused.',
        scope: 'org:agents:write',
        success: ofState,
        async handle({ agent, principal }) {
          await setModelPause.run(pool, agent.id, action === 'pause', principal.userId)
          return state(agent)
        },
      }),
    ),
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/model/budget',
      id: 'getAgentModelBudget',
      summary: 'Get the budget for models of an agent',
      scope: 'org:agents:read',
      success,
      handle: ({ agent }) => show(ofAgent(agent)),
    }),
    agentRoute({
      method: 'put',
      path: '/v0/agents/:agentId/model/budget',
      id: 'setAgentModelBudget',
      summary: 'Replace the budget for models of an agent',
      description: `The change applies within about a second. ${ADMIN_ONLY}`,
      scope: 'admin',
      role: 'owner',
      body: budgetChange,
      success,
      handle: ({ agent, body }) => change(ofAgent(agent), body),
    }),
    agentRoute({
      method: 'delete',
      path: '/v0/agents/:agentId/model/budget',
      id: 'removeAgentModelBudget',
      summary: 'Remove the budget for models of an agent',
      description: ADMIN_ONLY,
      scope: 'admin',
      role: 'owner',
      success,
      handle: ({ agent }) => change(ofAgent(agent), null),
    }),
  ]
}
