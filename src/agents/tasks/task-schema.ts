import { z } from 'zod'
import { like, uuid, withExample } from '../../http/fields.ts'
import { limit, oneOrMore, text, visibleText } from '../../http/shapes.ts'

const MIN_EVERY_MS = 60_000
/** Longer than anybody waits, and a number that every program handles. */
const MAX_MS = 10 * 365 * 86_400_000

const staggerMs = z.number().int().min(0).max(MAX_MS).optional()

const at = z.object({
  kind: z.literal('at'),
  at: z.iso
    .datetime({ offset: true, local: true, error: 'must be an ISO 8601 time' })
    .describe('Once, at this time; UTC unless it has an offset.'),
})
const every = z.object({
  kind: z.literal('every'),
  everyMs: z.number().int().min(MIN_EVERY_MS).max(MAX_MS),
  staggerMs,
})
const cron = z.object({
  kind: z.literal('cron'),
  expr: text(200)
    .trim()
    .regex(/^\S+(\s+\S+){4}$/, 'must have 5 fields')
    .describe('Minute, hour, day of the month, month, day of the week.'),
  tz: text(64).refine(isTimeZone, 'must be an IANA time zone').meta({ format: 'time-zone' }).optional(),
  staggerMs,
})

/** Clients use either name for the text of a payload. */
const words = {
  text: text(100_000).optional(),
  message: withExample(text(100_000), 'Sum up what came in over night.').optional(),
}

const payload = z
  .discriminatedUnion('kind', [
    z
      .object({
        kind: z.literal('agentTurn'),
        ...words,
        model: text(200).optional(),
        thinking: text(50).optional(),
        timeoutSeconds: z.number().int().min(1).max(86_400).optional(),
      })
      .meta(oneOrMore('text', 'message')),
    z.object({ kind: z.literal('systemEvent'), ...words }).meta(oneOrMore('text', 'message')),
  ])
  .transform((payload, context) => {
    const { text, message, ...rest } = payload
    const said = [text, message].filter((value) => value !== undefined)
    if (said.length === 0 || said.some((value) => value.trim() === '')) {
      context.addIssue({ code: 'custom', message: 'must have a text' })
    } else if (said.some((value) => value !== said[0])) {
      context.addIssue({ code: 'custom', message: 'text and message are two names of the same' })
    }
    const value = said[0] ?? ''
    return rest.kind === 'agentTurn' ? { ...rest, message: value } : { ...rest, text: value }
  })

const delivery = z.object({
  mode: z.enum(['none', 'announce', 'webhook']),
  channel: text(100).optional(),
  to: text(2048).optional(),
  bestEffort: z.boolean().optional(),
})

const fields = {
  name: withExample(visibleText(200), 'Morning report'),
  description: text(10_000),
  enabled: z.boolean(),
  schedule: withExample(z.discriminatedUnion('kind', [at, every, cron]), {
    kind: 'cron',
    expr: '0 9 * * *',
  }),
  payload,
  sessionTarget: z
    .enum(['main', 'isolated'])
    .describe(
      '`main` accepts system events, `isolated` turns of the agent; by default the one that the payload needs.',
    ),
  wakeMode: z.enum(['now', 'next-heartbeat']),
  delivery: delivery.describe('Where the result is sent; nowhere by default.'),
}

/** `POST A/tasks` (contract 4.3): name, schedule and payload are required. */
export const newTask = z.object({
  ...fields,
  description: fields.description.optional(),
  enabled: fields.enabled.default(true),
  sessionTarget: fields.sessionTarget.optional(),
  wakeMode: fields.wakeMode.default('now'),
  delivery: fields.delivery.default({ mode: 'none' }),
})

/** `PUT A/tasks/{jobId}`: absent fields stay unchanged. */
export const taskChanges = z
  .object(fields)
  .partial()
  .refine((changes) => Object.values(changes).some((value) => value !== undefined), 'must change something')
  .meta(oneOrMore(...Object.keys(fields)))

export const toggle = z
  .object({ enabled: z.boolean().optional() })
  .optional()
  .transform((body) => body ?? {})

export const taskPath = z.object({ agentId: z.string(), jobId: text(200) })

export const taskQuery = z.object({
  includeDisabled: z
    .enum(['true', 'false'], 'must be true or false')
    .optional()
    .describe('Whether to include disabled tasks.'),
})

export const runQuery = z.object({ limit: limit(50, 200) })

/** A job in the engine's format; additional fields are passed on. */
export const job = z.looseObject({
  id: uuid,
  name: like('Morning report'),
  enabled: like(true),
  createdAtMs: like(1_795_281_866_768),
  /** Only on the engine's own jobs. */
  declarationKey: z.string().optional(),
})
export type Job = z.output<typeof job>

export const jobs = z.object({ jobs: z.array(job) })

export const runs = z.looseObject({
  entries: z.array(z.looseObject({ jobId: uuid, ts: like(1_795_334_404_210) })),
})

export const started = z.looseObject({
  ok: like(true),
  enqueued: z.boolean().optional(),
  runId: z.string().optional(),
})

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
