/** Reads and writes the engine's tasks. Fields beyond the API's own come from the engine and are validated. */
import { api, unwrap } from '../../../api/client.ts'
import type { Schedule } from './schedule.ts'

export async function readTasks(agentId: string): Promise<Task[]> {
  const params = { path: { agentId }, query: { includeDisabled: 'true' as const } }
  const { jobs } = await unwrap(api.GET('/v0/agents/{agentId}/tasks', { params }))
  return jobs.map(toTask)
}

export interface Task {
  id: string
  name: string
  description: string
  enabled: boolean
  schedule: Schedule | undefined
  kind: 'agentTurn' | 'systemEvent'
  message: string
  /** Other fields of the payload, such as the model. */
  more: Record<string, unknown>
  nextRunAtMs: number | undefined
  lastRunAtMs: number | undefined
  lastStatus: string | undefined
  lastError: string | undefined
  isRunning: boolean
}

const record = (value: unknown) => (value ?? {}) as Record<string, unknown>
const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
const number = (value: unknown) => (typeof value === 'number' ? value : undefined)

const pick = (from: Record<string, unknown>, names: string[]) =>
  Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)))

function toTask(job: { id: string; name: string; enabled: boolean; [more: string]: unknown }): Task {
  const payload = record(job.payload)
  const state = record(job.state)
  return {
    id: job.id,
    name: job.name,
    description: text(job.description) ?? '',
    enabled: job.enabled,
    schedule: toSchedule(record(job.schedule)),
    kind: payload.kind === 'systemEvent' ? 'systemEvent' : 'agentTurn',
    message: text(payload.message) ?? text(payload.text) ?? '',
    more: pick(payload, ['model', 'thinking', 'timeoutSeconds']),
    nextRunAtMs: job.enabled ? number(state.nextRunAtMs) : undefined,
    lastRunAtMs: number(state.lastRunAtMs),
    lastStatus: text(state.lastRunStatus) ?? text(state.lastStatus),
    lastError: text(state.lastError),
    isRunning: number(state.runningAtMs) !== undefined,
  }
}

function toSchedule({ kind, at, everyMs, expr, tz }: Record<string, unknown>): Schedule | undefined {
  if (kind === 'at' && typeof at === 'string') return { kind, at }
  if (kind === 'every' && typeof everyMs === 'number') return { kind, everyMs }
  if (kind === 'cron' && typeof expr === 'string')
    return { kind, expr, ...(typeof tz === 'string' && { tz }) }
  return undefined
}

export interface TaskRun {
  at: number
  status: string
  summary: string
  durationMs: number | undefined
}

export async function readRuns(agentId: string, jobId: string): Promise<TaskRun[]> {
  const params = { path: { agentId, jobId }, query: { limit: 20 } }
  const { entries } = await unwrap(api.GET('/v0/agents/{agentId}/tasks/{jobId}/runs', { params }))
  return entries.map((entry: { ts: number; [more: string]: unknown }) => ({
    at: number(entry.runAtMs) ?? entry.ts,
    status: text(entry.status) ?? '',
    summary: text(entry.error) ?? text(entry.summary) ?? '',
    durationMs: number(entry.durationMs),
  }))
}
