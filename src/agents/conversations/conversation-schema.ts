import { z } from 'zod'
import { like, timestamp, uuid, withExample } from '../../http/fields.ts'

/** A longer message belongs in a file. */
export const MAX_MESSAGE_BYTES = 65_536
const MAX_MESSAGES = 1000

export const conversationPath = z.object({
  conversationId: z
    .guid('must be a UUID')
    .describe('A UUID chosen by the client; the first message starts the conversation.'),
})

export const newMessage = z.object({
  text: withExample(z.string('must be text'), 'Which books came this week?')
    .refine((text) => text.trim() !== '', 'must not be empty')
    .refine(
      (text) => Buffer.byteLength(text) <= MAX_MESSAGE_BYTES,
      `must have at most ${MAX_MESSAGE_BYTES} bytes`,
    )
    .meta({ minLength: 1, maxLength: MAX_MESSAGE_BYTES })
    .describe('The message to the agent.'),
})

export const messagesQuery = z.object({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_MESSAGES)
    .default(100)
    .describe('Maximum number of messages.'),
  offset: z.coerce
    .number()
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .describe('How many of the newest messages to skip: `nextOffset` of the previous page.'),
})

const conversation = z.object({
  conversationId: uuid,
  title: like('Which books came this week?').nullable().describe('The first words of the conversation.'),
  updatedAt: timestamp.nullable(),
  isReplying: z.boolean(),
})
export const conversations = z.object({ conversations: z.array(conversation) })
export type Conversation = z.output<typeof conversation>

export const message = z.object({
  id: uuid,
  role: z.enum(['user', 'assistant', 'tool']).describe('`tool` is the result of a tool call.'),
  text: like('Which books came this week?'),
  createdAt: timestamp.nullable(),
  toolCalls: z
    .array(z.object({ id: uuid, name: like('read'), arguments: z.string().describe('As JSON.') }))
    .describe('Tools that the agent called in this message.'),
  toolCallId: z.string().nullable().describe('The call whose result this is.'),
  isError: z.boolean().describe('True if the call, or the reply, failed.'),
})
export type Message = z.output<typeof message>

export const page = z.object({
  messages: z.array(message).describe('Oldest first.'),
  isReplying: z.boolean(),
  nextOffset: z.number().int().nullable().describe('Where older messages begin; null if there are none.'),
})
