/** Scheduled tasks of an agent, which are jobs of the engine's own cron. */
import { z } from 'zod'
import { ApiError, contractError, messages, notFound } from '../../errors.ts'
import type { Agent } from '../agent.ts'
import type { AgentdClient } from '../agentd-client.ts'
import { callEngine, EngineRefusal, engineFailed } from '../engine-call.ts'
import { type Job, job, jobs, type newTask, runs, started, type taskChanges } from './task-schema.ts'

const MAX_TASKS = 20
/** A longer turn is cancelled, unless its task sets another limit. */
const TURN_SECONDS = 300
/** The engine lists at most this many at a time. */
const PAGE = 200
/**
 * The engine and its plugins declare their own jobs and recreate them when they are gone. These are not clients' tasks.
 */
const isTask = ({ declarationKey }: Job) => declarationKey === undefined

/** The fields with which the engine can create a job; the rest of it is the engine's own. */
const SAVED = [
  'name',
  'description',
  'enabled',
  'deleteAfterRun',
  'schedule',
  'payload',
  'sessionTarget',
  'wakeMode',
  'delivery',
]

export class Tasks {
  readonly #agentd: AgentdClient

  constructor(agentd: AgentdClient) {
    this.#agentd = agentd
  }

  /** Oldest first. @param failure the message if that fails. */
  async list(
    agent: Agent,
    includeDisabled: boolean,
    failure: string = messages.listTasksFailed,
  ): Promise<Job[]> {
    const params = { includeDisabled, limit: PAGE }
    const found = await this.#call(agent, 'cron.list', params, jobs, failure)
    return found.jobs.filter(isTask).sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
  }

  /** @throws ApiError 404 */
  async find(agent: Agent, id: string): Promise<Job> {
    const found = await this.#call(agent, 'cron.get', { id }, job)
    if (!isTask(found)) throw notFound('There is no such task')
    return found
  }

  /** @throws ApiError 400 if the engine refuses the task, or if it is one too many. */
  async create(agent: Agent, task: z.output<typeof newTask>): Promise<Job> {
    const failure = messages.createTaskFailed
    if ((await this.list(agent, true, failure)).length >= MAX_TASKS) throw tooMany()
    const params =
      task.payload.kind === 'agentTurn'
        ? { sessionTarget: 'isolated', ...task, payload: { timeoutSeconds: TURN_SECONDS, ...task.payload } }
        : { sessionTarget: 'main', ...task }
    const created = await this.#call(agent, 'cron.add', params, job, failure)
    // Concurrent requests may have created other tasks: each of those over the limit removes its own.
    const rank = (await this.list(agent, true, failure)).findIndex(({ id }) => id === created.id)
    if (rank < MAX_TASKS) return created
    await this.#call(agent, 'cron.remove', { id: created.id }, z.unknown(), failure)
    throw tooMany()
  }

  /** @throws ApiError 404; 400 if the engine refuses the change. */
  async update(agent: Agent, id: string, patch: Partial<z.output<typeof taskChanges>>): Promise<Job> {
    await this.find(agent, id)
    return this.#call(agent, 'cron.update', { id, patch }, job)
  }

  /** @throws ApiError 404 */
  async remove(agent: Agent, id: string): Promise<void> {
    await this.find(agent, id)
    await this.#call(agent, 'cron.remove', { id }, z.unknown())
  }

  /** Starts it now, whatever its schedule; the engine runs it in the background. @throws ApiError 404 */
  async run(agent: Agent, id: string): Promise<z.output<typeof started>> {
    await this.find(agent, id)
    return this.#call(agent, 'cron.run', { id, mode: 'force' }, started)
  }

  /** Newest first. @throws ApiError 404 */
  async runs(agent: Agent, id: string, limit: number): Promise<z.output<typeof runs>> {
    await this.find(agent, id)
    return this.#call(agent, 'cron.runs', { id, limit }, runs)
  }

  /**
   * Creates tasks that were saved elsewhere, with new ids and without their runs. A task whose name the agent
   * already has was created by an earlier attempt.
   * @returns problems, for people.
   */
  async restore(agent: Agent, saved: readonly Job[]): Promise<string[]> {
    const existing = (await this.list(agent, true)).map(({ name }) => name)
    const problems: string[] = []
    for (const task of saved) {
      const at = existing.indexOf(task.name)
      if (at >= 0) {
        existing.splice(at, 1)
        continue
      }
      const params = Object.fromEntries(
        SAVED.filter((field) => field in task).map((field) => [field, task[field]]),
      )
      try {
        await this.#call(agent, 'cron.add', params, job, messages.createTaskFailed)
      } catch (error) {
        if (!(error instanceof ApiError) || error.code === 'agent_not_ready') throw error
        problems.push(`the task ${task.name}: ${error.headers['error-detail'] ?? error.message}`)
      }
    }
    return problems
  }

  async #call<T>(
    agent: Agent,
    method: string,
    params: Record<string, unknown>,
    shape: z.ZodType<T>,
    failure: string = messages.cliError,
  ): Promise<T> {
    try {
      return await callEngine(this.#agentd, agent, { method, params, shape, failure })
    } catch (error) {
      throw error instanceof EngineRefusal ? toAnswer(error, failure) : error
    }
  }
}

function toAnswer(refusal: EngineRefusal, failure: string) {
  if (refusal.code === 'CRON_JOB_NOT_FOUND') return notFound('There is no such task')
  if (refusal.code === 'INVALID_REQUEST') return invalid(refusal.message)
  return engineFailed(failure, refusal)
}

const invalid = (detail: string) => contractError(400, 'bad_request', messages.invalidParameters, detail)
const tooMany = () => invalid(`an agent has at most ${MAX_TASKS} tasks`)
