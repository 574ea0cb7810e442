/** Converts the engine's messages into the API's. They are untrusted, so only bounded text is kept. */
import { z } from 'zod'
import type { Message } from './conversation-schema.ts'

const MAX_CHARS = 262_144
const bounded = z
  .string()
  .catch('')
  .transform((text) => text.slice(0, MAX_CHARS).toWellFormed())
const name = z
  .string()
  .catch('')
  .transform((text) => text.slice(0, 200).toWellFormed())

const part = z.looseObject({
  type: z.string().catch(''),
  text: bounded.optional(),
  id: name.optional(),
  name: name.optional(),
  arguments: z.unknown().optional(),
})
const engineMessage = z.looseObject({
  role: z.enum(['user', 'assistant', 'toolResult']),
  content: z.union([z.string(), z.array(part)]).catch(''),
  timestamp: z.number().optional().catch(undefined),
  toolCallId: name.optional(),
  isError: z.boolean().optional().catch(undefined),
  stopReason: z.string().optional().catch(undefined),
  openclawAbort: z.looseObject({ aborted: z.boolean() }).optional().catch(undefined),
  errorMessage: bounded.optional(),
  __openclaw: z
    .looseObject({ id: name.optional(), idempotencyKey: name.optional() })
    .optional()
    .catch(undefined),
})

/** The API's message; undefined for entries that people do not read: the engine's own notes, and unknown kinds. */
export function toMessage(said: unknown): Message | undefined {
  const parsed = engineMessage.safeParse(said)
  if (!parsed.success) return undefined
  const { role, content, timestamp, toolCallId, isError, stopReason, errorMessage, __openclaw } = parsed.data
  const parts =
    typeof content === 'string' ? [{ type: 'text', text: content, arguments: undefined }] : content
  const text = parts
    .filter(({ type }) => type === 'text')
    .map(({ text = '' }) => text)
    .join('\n')
    .slice(0, MAX_CHARS)
    .toWellFormed()
  const toolCalls = parts.flatMap(({ type, id = '', name = '', arguments: given }) =>
    type === 'toolCall' ? [{ id, name, arguments: asJson(given) }] : [],
  )
  const hasFailed = stopReason === 'error' && errorMessage !== undefined
  return {
    id: __openclaw?.id ?? '',
    role: role === 'toolResult' ? 'tool' : role,
    text: hasFailed && text === '' ? errorMessage : text,
    createdAt: timeOf(timestamp),
    toolCalls,
    toolCallId: role === 'toolResult' ? (toolCallId ?? null) : null,
    isError: hasFailed || isError === true,
  }
}

/**
 * The reply to the message of a run: what the agent said between it and the next message. Undefined if the message is
 * not among them.
 * @param said the engine's messages, oldest first.
 */
export function replyOf(
  said: unknown[],
  runId: string,
): { state: 'completed' | 'failed' | 'canceled' | 'unknown'; text: string } | undefined {
  const keys = said.map((one) => engineMessage.safeParse(one).data?.__openclaw?.idempotencyKey)
  const asked = keys.indexOf(`${runId}:user`)
  if (asked < 0) return undefined
  let text = ''
  for (const one of said.slice(asked + 1)) {
    const message = toMessage(one)
    if (message?.role === 'user') break
    if (message?.role !== 'assistant') continue
    if (message.text !== '') text = message.text
    if (message.isError) return { state: 'failed', text }
    if (engineMessage.parse(one).openclawAbort?.aborted) return { state: 'canceled', text }
  }
  return { state: text === '' ? 'unknown' : 'completed', text }
}

export function timeOf(ms: number | undefined): string | null {
  const at = new Date(ms ?? Number.NaN)
  return Number.isNaN(at.getTime()) ? null : at.toISOString()
}

const asJson = (given: unknown): string => (JSON.stringify(given) ?? '{}').slice(0, MAX_CHARS).toWellFormed()
