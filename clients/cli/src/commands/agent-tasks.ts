/** Work that an agent does by itself. */
import { unwrap } from '../../../typescript/src/index.ts'
import { type Call, command, type Shown } from '../command.ts'
import { UsageError } from '../errors.ts'
import { agentIdOf } from '../find.ts'
import { ago, readSpan, span, table } from '../format.ts'

/** The engine's record of a task has more than the API's document promises. */
interface Task {
  id: string
  name: string
  enabled: boolean
  schedule?: { kind: string; expr?: string; tz?: string; everyMs?: number; at?: string }
  state?: { lastRunAtMs?: number; lastStatus?: string }
}

export const agentTaskCommands = [
  command({
    name: 'agents tasks ls',
    summary: 'list the scheduled tasks of an agent',
    usage: '<agent>',
    async run({ berth, args }) {
      const params = {
        path: { agentId: await agentIdOf(berth, args[0]) },
        query: { includeDisabled: 'true' as const },
      }
      const { jobs } = await unwrap(berth.GET('/v0/agents/{agentId}/tasks', { params }))
      const rows = (jobs as Task[]).map(({ id, name, enabled, schedule, state }) => ({
        id,
        name,
        schedule: scheduleText(schedule),
        on: enabled ? 'yes' : 'no',
        last: state?.lastRunAtMs ? `${state.lastStatus ?? ''} ${ago(state.lastRunAtMs)}`.trim() : null,
      }))
      return { data: jobs, text: table(rows) }
    },
  }),
  command({
    name: 'agents tasks add',
    summary: 'have an agent do something once or on a schedule',
    usage: '<agent> <name> <message>',
    options: {
      cron: { about: 'at these times: "0 9 * * *"', value: 'expression' },
      tz: { about: 'the time zone of --cron: Europe/Berlin', value: 'zone' },
      every: { about: 'again and again: 30m, 12h, 7d', value: 'time' },
      at: { about: 'once: 2027-01-31T09:00Z', value: 'time' },
    },
    async run({ berth, args: [named, name = '', message = ''], options }) {
      const agentId = await agentIdOf(berth, named)
      const body = {
        ...{ name, schedule: scheduleOf(options), sessionTarget: 'isolated' as const },
        payload: { kind: 'agentTurn' as const, message },
      }
      const params = { path: { agentId } }
      const data = await unwrap(berth.POST('/v0/agents/{agentId}/tasks', { params, body: body as never }))
      return { data, text: `${data.id}  ${scheduleText(body.schedule)}` }
    },
  }),
  command({
    name: 'agents tasks run',
    summary: 'run a task now',
    usage: '<agent> <task>',
    run: (call) =>
      onTask(call, async (path) => {
        const data = await unwrap(
          call.berth.POST('/v0/agents/{agentId}/tasks/{jobId}/run', { params: { path } }),
        )
        return { data, text: data.runId ?? 'started' }
      }),
  }),
  command({
    name: 'agents tasks runs',
    summary: 'list the runs of a task',
    usage: '<agent> <task>',
    run: (call) =>
      onTask(call, async (path) => {
        const { entries } = await unwrap(
          call.berth.GET('/v0/agents/{agentId}/tasks/{jobId}/runs', { params: { path } }),
        )
        const rows = (entries as Run[]).map(({ ts, status, durationMs, summary, error }) => ({
          when: ago(ts),
          status,
          took: durationMs === undefined ? null : span(durationMs),
          said: error ?? summary,
        }))
        return { data: entries, text: table(rows) }
      }),
  }),
  ...(['on', 'off'] as const).map((word) =>
    command({
      name: `agents tasks ${word}`,
      summary: `switch a task ${word}`,
      usage: '<agent> <task>',
      run: (call) =>
        onTask(call, async (path) => {
          const body = { enabled: word === 'on' }
          const data = await unwrap(
            call.berth.POST('/v0/agents/{agentId}/tasks/{jobId}/toggle', { params: { path }, body }),
          )
          return { data, text: `${data.name} is ${word}` }
        }),
    }),
  ),
  command({
    name: 'agents tasks rm',
    summary: 'delete a task',
    usage: '<agent> <task>',
    run: (call) =>
      onTask(call, async (path) => {
        const data = await unwrap(
          call.berth.DELETE('/v0/agents/{agentId}/tasks/{jobId}', { params: { path } }),
        )
        return { data, text: `deleted ${path.jobId}` }
      }),
  }),
]

interface Run {
  ts: number
  status?: string
  durationMs?: number
  summary?: string
  error?: string
}

async function onTask(
  { berth, args: [named, jobId = ''] }: Pick<Call, 'berth' | 'args'>,
  act: (path: { agentId: string; jobId: string }) => Promise<Shown>,
): Promise<Shown> {
  return act({ agentId: await agentIdOf(berth, named), jobId })
}

interface Times {
  cron: string | undefined
  tz: string | undefined
  every: string | undefined
  at: string | undefined
}

function scheduleOf({ cron, tz, every, at }: Times) {
  if ([cron, every, at].filter(Boolean).length !== 1)
    throw new UsageError('it needs one of --cron, --every and --at')
  if (cron) return { kind: 'cron' as const, expr: cron, ...(tz && { tz }) }
  if (at) {
    if (Number.isNaN(Date.parse(at))) throw new UsageError(`${at} is not a time`)
    return { kind: 'at' as const, at: new Date(at).toISOString() }
  }
  const everyMs = readSpan(every ?? '')
  if (!everyMs) throw new UsageError(`${every} is not a time like 30m, 12h or 7d`)
  return { kind: 'every' as const, everyMs }
}

function scheduleText(schedule: Task['schedule']): string {
  const { kind, expr, tz, everyMs, at } = schedule ?? { kind: '' }
  if (kind === 'cron') return [expr, tz].filter(Boolean).join(' ')
  return everyMs ? `every ${span(everyMs)}` : at ? `at ${at}` : kind
}
