import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import type { ManifestTask } from '../../../agentd/manifest-check.ts'
import { Tasks } from '../../../src/agents/tasks/jobs.ts'
import { type Job, newTask } from '../../../src/agents/tasks/task-schema.ts'
import { describeIssue } from '../../../src/http/shapes.ts'
import { type Applying, type PartResult, problemOf } from './part.ts'

/**
 * Makes the tasks of a manifest those of the agent, by their names: others stay. It needs the gateway, which keeps them.
 */
export async function applyTasks(
  { services, agent, target }: Pick<Applying, 'services' | 'agent' | 'target'>,
  wanted: ManifestTask[],
): Promise<PartResult> {
  const tasks = new Tasks(services.agentd)
  const reached = { ...agent, ...target }
  // Before anything is changed: where the gateway is away, that is one problem and not twenty.
  const existing = await tasks.list(reached, true)
  const problems: string[] = []
  for (const [index, entry] of wanted.entries()) {
    const parsed = newTask.safeParse(toTask(entry))
    if (!parsed.success) {
      problems.push(`[${index}].${describeIssue(parsed.error)}`)
      continue
    }
    const task = parsed.data
    const known = existing.find(({ name }) => name === task.name)
    try {
      if (!known) await tasks.create(reached, task)
      else if (!isIn(task, known)) await tasks.update(reached, known.id, task)
    } catch (error) {
      problems.push(`[${index}]: ${problemOf(error)}`)
    }
  }
  return { problems }
}

/** A task as `POST A/tasks` takes it. */
function toTask(entry: ManifestTask): z.input<typeof newTask> | Record<string, unknown> {
  const { name, description, enabled, delivery, wakeMode } = entry
  const payload = entry.payload ?? { kind: 'agentTurn', message: entry.prompt }
  return {
    name,
    description: description ?? undefined,
    enabled,
    schedule: typeof entry.schedule === 'string' ? { kind: 'cron', expr: entry.schedule } : entry.schedule,
    payload,
    delivery,
    sessionTarget: entry.sessionTarget ?? (payload.kind === 'agentTurn' ? 'isolated' : 'main'),
    wakeMode,
  }
}

/** Whether a job has all that a task says; the engine adds to it. */
function isIn(part: unknown, whole: Job | unknown): boolean {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return isDeepStrictEqual(part, whole)
  if (typeof whole !== 'object' || whole === null) return false
  return Object.entries(part).every(
    ([key, value]) => value === undefined || isIn(value, (whole as Record<string, unknown>)[key]),
  )
}
