import { z } from 'zod'
import { messages } from '../../errors.ts'
import { like } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { Tasks } from './jobs.ts'
import {
  job,
  jobs,
  newTask,
  runQuery,
  runs,
  started,
  taskChanges,
  taskPath,
  taskQuery,
  toggle,
} from './task-schema.ts'

const agentRoute = agentRoutesOf('Tasks')
const TASKS = '/v0/agents/:agentId/tasks'
const TASK = `${TASKS}/:jobId`

/** Scheduled tasks of an agent (contract 4.3). */
export function taskRoutes({ agentd }: AgentServices): Route[] {
  const tasks = new Tasks(agentd)
  return [
    agentRoute({
      method: 'get',
      path: TASKS,
      id: 'listTasks',
      summary: 'List tasks',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      query: taskQuery,
      success: { description: 'The tasks, oldest first.', body: jobs },
      async handle({ agent, query }) {
        return { body: { jobs: await tasks.list(agent, query.includeDisabled === 'true') } }
      },
    }),
    agentRoute({
      method: 'post',
      path: TASKS,
      id: 'createTask',
      summary: 'Create a task',
      description: 'An agent has at most 20.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: newTask,
      invalidBody: messages.invalidParameters,
      success: { description: 'The task.', body: job },
      handle: async ({ agent, body }) => ({ body: await tasks.create(agent, body) }),
    }),
    agentRoute({
      method: 'get',
      path: TASK,
      id: 'getTask',
      summary: 'Get a task',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      params: taskPath,
      success: { description: 'The task.', body: job },
      handle: async ({ agent, params }) => ({ body: await tasks.find(agent, params.jobId) }),
    }),
    agentRoute({
      method: 'put',
      path: TASK,
      id: 'updateTask',
      summary: 'Change a task',
      description: 'Omitted fields stay unchanged.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: taskPath,
      body: taskChanges,
      invalidBody: messages.invalidParameters,
      success: { description: 'The changed task.', body: job },
      handle: async ({ agent, params, body }) => ({ body: await tasks.update(agent, params.jobId, body) }),
    }),
    agentRoute({
      method: 'delete',
      path: TASK,
      id: 'deleteTask',
      summary: 'Delete a task',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: taskPath,
      success: { description: 'Deleted.', body: z.object({ success: like(true) }) },
      async handle({ agent, params }) {
        await tasks.remove(agent, params.jobId)
        return { body: { success: true } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${TASK}/run`,
      id: 'runTask',
      summary: 'Run a task now',
      description: 'Runs in the background, whatever its schedule; `/runs` has the result.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: taskPath,
      success: { description: 'Whether it was started.', body: started },
      handle: async ({ agent, params }) => ({ body: await tasks.run(agent, params.jobId) }),
    }),
    agentRoute({
      method: 'post',
      path: `${TASK}/toggle`,
      id: 'toggleTask',
      summary: 'Switch a task on or off',
      description: 'Without a body it is toggled.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: taskPath,
      body: toggle,
      invalidBody: messages.invalidParameters,
      success: { description: 'The changed task.', body: job },
      async handle({ agent, params: { jobId }, body }) {
        const enabled = body.enabled ?? !(await tasks.find(agent, jobId)).enabled
        return { body: await tasks.update(agent, jobId, { enabled }) }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${TASK}/runs`,
      id: 'listTaskRuns',
      summary: 'List the runs of a task',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      params: taskPath,
      query: runQuery,
      success: { description: 'Its runs, newest first.', body: runs },
      handle: async ({ agent, params, query }) => ({
        body: await tasks.runs(agent, params.jobId, query.limit),
      }),
    }),
  ]
}
