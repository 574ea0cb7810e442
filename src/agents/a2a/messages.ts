/** Converts between A2A's messages and tasks and what Berth has. */
import {
  type Artifact,
  type Message,
  type Part,
  Role,
  TaskState as State,
  type Task,
  type TaskStatus,
} from '@a2a-js/sdk'
import { ContentTypeNotSupportedError, RequestMalformedError } from '@a2a-js/sdk/errors'
import { MAX_MESSAGE_BYTES } from '../conversations/conversation-schema.ts'
import type { StoredTask } from './task-store.ts'

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const ARTIFACT = 'reply'

/** The text of a message: its text parts, and its data as JSON. @throws RequestMalformedError */
export function readText(message: Message | undefined): string {
  if (!message?.messageId) throw new RequestMalformedError('message.messageId: required')
  const text = message.parts.map(textOf).join('\n\n')
  if (text.trim() === '') throw new RequestMalformedError('message.parts: must have a text')
  if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES)
    throw new RequestMalformedError(`message.parts: must have at most ${MAX_MESSAGE_BYTES} bytes`)
  return text
}

function textOf({ content }: Part): string {
  if (content?.$case === 'text') return content.value
  if (content?.$case === 'data') return JSON.stringify(content.value) ?? ''
  throw new ContentTypeNotSupportedError({
    message: 'message.parts: the agent takes text and data, no files',
  })
}

/** @param text the agent's reply, if it is known. */
export function toTask(task: StoredTask, text = ''): Task {
  const { id, contextId } = task
  const artifacts = text !== '' && task.state === 'completed' ? [artifactOf(text)] : []
  return { id, contextId, status: statusOf(task), artifacts, history: [], metadata: undefined }
}

export const artifactOf = (text: string): Artifact => ({
  artifactId: ARTIFACT,
  name: ARTIFACT,
  description: '',
  parts: [toPart(text)],
  metadata: undefined,
  extensions: [],
})

const CODES = {
  working: State.TASK_STATE_WORKING,
  completed: State.TASK_STATE_COMPLETED,
  failed: State.TASK_STATE_FAILED,
  canceled: State.TASK_STATE_CANCELED,
}

export function statusOf({ id, contextId, state, reason, changedAt }: StoredTask): TaskStatus {
  const message: Message | undefined =
    reason === null
      ? undefined
      : {
          messageId: `${id}-status`,
          contextId,
          taskId: id,
          role: Role.ROLE_AGENT,
          parts: [toPart(reason)],
          metadata: undefined,
          extensions: [],
          referenceTaskIds: [],
        }
  return { state: CODES[state], message, timestamp: changedAt.toISOString() }
}

const toPart = (text: string): Part => ({
  content: { $case: 'text', value: text },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
})

/** The place in a list of tasks behind a task. */
export const writePageToken = ({ id, changedAt }: StoredTask): string => `${changedAt.getTime()}.${id}`

/** @throws RequestMalformedError */
export function readPageToken(token: string): Pick<StoredTask, 'id' | 'changedAt'> | undefined {
  if (token === '') return undefined
  const [, time, id = ''] = /^(\d{1,15})\.(.*)$/.exec(token) ?? []
  if (!UUID.test(id)) throw new RequestMalformedError('pageToken: must be of an earlier response')
  return { id, changedAt: new Date(Number(time)) }
}
