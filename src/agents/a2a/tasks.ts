/**
 * The methods of A2A for one agent: each message is a task, whose reply is an artifact. Replies are in the engine's
 * conversations; only states are stored. So a task survives the process that took it: the next request for it looks at
 * the conversation. This module is loaded with the first request.
 */
import { randomUUID } from 'node:crypto'
import {
  type AgentCard,
  type CancelTaskRequest,
  type GetTaskRequest,
  type ListTasksRequest,
  type ListTasksResponse,
  type SendMessageRequest,
  TaskState as State,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task,
} from '@a2a-js/sdk'
import {
  ExtendedAgentCardNotConfiguredError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors'
import type { A2ARequestHandler } from '@a2a-js/sdk/server'
import type { Agent } from '../agent.ts'
import type { Conversations, ReplyEvent } from '../conversations/conversations.ts'
import { artifactOf, readPageToken, readText, statusOf, toTask, UUID, writePageToken } from './messages.ts'
import type { StoredTask, TaskState, TaskStore } from './task-store.ts'

/** A message that the engine does not know is on its way to it for this long at most. */
const UNDERWAY_MS = 90_000
const LOST = 'The agent has no reply: it restarted, or its conversation was deleted'
const PAGE = 50

export interface TaskServices {
  agent: Agent
  conversations: Conversations
  store: TaskStore
  /** Called before anything is sent to the agent or stopped. */
  begin(): Promise<void>
  /** Fires when the client has gone. */
  signal: AbortSignal
}

/** A task, and its reply if it is known. */
interface Known {
  task: StoredTask
  text: string
}

export class Tasks implements A2ARequestHandler {
  readonly #services: TaskServices

  constructor(services: TaskServices) {
    this.#services = services
  }

  /** The library only reads whether the agent streams. */
  async getAgentCard(): Promise<AgentCard> {
    return {
      capabilities: { streaming: true, pushNotifications: false, extensions: [] },
    } as unknown as AgentCard
  }

  async sendMessage({ message, configuration }: SendMessageRequest): Promise<Task> {
    const { task, reply, leave } = await this.#send(message, configuration)
    try {
      if (configuration?.returnImmediately) return toTask(task)
      let text = ''
      for await (const event of reply) {
        if (event.type === 'text') text = event.replace ? event.text : text + event.text
        if (event.type === 'message' && event.message.role === 'assistant') text = event.message.text || text
        const ended = await this.#ended(task, event, text)
        if (ended) return toTask(ended.task, ended.text)
      }
      throw new Error('A reply ended without an event')
    } finally {
      leave()
    }
  }

  async *sendMessageStream({
    message,
    configuration,
  }: SendMessageRequest): AsyncGenerator<StreamResponse, void> {
    const { task, reply, leave } = await this.#send(message, configuration)
    try {
      yield { payload: { $case: 'task', value: toTask(task) } }
      yield* this.#follow(task, reply)
    } finally {
      leave()
    }
  }

  async getTask({ id }: GetTaskRequest): Promise<Task> {
    const { task, text } = await this.#know(await this.#find(id), true)
    return toTask(task, text)
  }

  async listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    const {
      contextId,
      status,
      pageSize = PAGE,
      pageToken,
      statusTimestampAfter: since,
      includeArtifacts,
    } = request
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100)
      throw new RequestMalformedError('pageSize: must be 1 to 100')
    if (contextId && !UUID.test(contextId)) throw new RequestMalformedError('contextId: must be a UUID')
    if (since !== undefined && Number.isNaN(Date.parse(since)))
      throw new RequestMalformedError('statusTimestampAfter: must be a time')
    const state = status ? STATES[status] : undefined
    const nothing = { tasks: [], nextPageToken: '', pageSize, totalSize: 0 }
    if (status && !state) return nothing
    const { store } = this.#services
    const filter = { contextId, state, changedSince: since === undefined ? undefined : new Date(since) }
    const { tasks, total } = await store.list(filter, {
      limit: pageSize + 1,
      after: readPageToken(pageToken),
    })
    const page = tasks.slice(0, pageSize)
    const last = page.at(-1)
    const known: Known[] = []
    for (const task of page) known.push(await this.#know(task, includeArtifacts ?? false))
    return {
      // A task that has ended unnoticed may no longer match.
      tasks: known
        .filter(({ task }) => !state || task.state === state)
        .map(({ task, text }) => toTask(task, text)),
      nextPageToken: tasks.length > pageSize && last ? writePageToken(last) : '',
      pageSize,
      totalSize: total,
    }
  }

  async cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    const { agent, conversations, store, begin } = this.#services
    const task = await this.#find(id)
    if (task.state !== 'working') throw new TaskNotCancelableError({ message: `The task is ${task.state}` })
    await begin()
    if (await conversations.stop(agent, task.contextId, task.id)) {
      const ended = (await store.end(task, 'canceled')) ?? task
      if (ended.state === 'canceled') return toTask(ended)
    }
    const known = await this.#know(await this.#find(id), false)
    throw new TaskNotCancelableError({ message: `The task is ${known.task.state}` })
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void> {
    const { agent, conversations } = this.#services
    const { task, text } = await this.#know(await this.#find(id), true)
    if (task.state !== 'working')
      throw new UnsupportedOperationError({ message: `The task is ${task.state}` })
    const { signal, leave } = this.#until()
    try {
      const reply = await conversations.open(agent, task.contextId, { signal })
      yield { payload: { $case: 'task', value: toTask(task, text) } }
      yield* this.#follow(task, reply)
    } finally {
      leave()
    }
  }

  async getAuthenticatedExtendedAgentCard(): Promise<never> {
    throw new ExtendedAgentCardNotConfiguredError({ message: 'The public card is the whole card' })
  }

  createTaskPushNotificationConfig = noPush
  getTaskPushNotificationConfig = noPush
  listTaskPushNotificationConfigs = noPush
  deleteTaskPushNotificationConfig = noPush

  async #find(id: string): Promise<StoredTask> {
    const task = UUID.test(id) ? await this.#services.store.find(id) : undefined
    if (!task) throw new TaskNotFoundError({ message: `There is no task ${id}` })
    return task
  }

  /** Sends a message to the agent. */
  async #send(message: SendMessageRequest['message'], configuration: SendMessageRequest['configuration']) {
    const { agent, conversations, store, begin } = this.#services
    if (configuration?.taskPushNotificationConfig) await noPush()
    const text = readText(message)
    if (message?.taskId) {
      const { state } = await this.#find(message.taskId)
      const hint = 'send a message with its contextId and without a taskId'
      throw new UnsupportedOperationError({ message: `The task is ${state}: ${hint}` })
    }
    const contextId = (message?.contextId || randomUUID()).toLowerCase()
    if (!UUID.test(contextId)) throw new RequestMalformedError('contextId: must be a UUID')
    await begin()
    const task = await store.add(contextId)
    const { signal, leave } = this.#until()
    try {
      const reply = await conversations.open(agent, contextId, { text, runId: task.id, signal })
      return { task, reply, leave }
    } catch (error) {
      await store.remove(task)
      throw error
    }
  }

  /** A signal for following a reply, and the function that ends following it. */
  #until() {
    const left = new AbortController()
    return { signal: AbortSignal.any([this.#services.signal, left.signal]), leave: () => left.abort() }
  }

  /** The updates of a task until it has ended. */
  async *#follow(task: StoredTask, reply: AsyncIterable<ReplyEvent>): AsyncGenerator<StreamResponse, void> {
    let text = ''
    let item: string | undefined
    for await (const event of reply) {
      if (event.type === 'text') {
        // The last words of the agent are the reply: they replace what it wrote before it called tools.
        const append = item === event.item && !event.replace
        item = event.item
        text = append ? text + event.text : event.text
        const artifact = artifactOf(event.text)
        const ids = { taskId: task.id, contextId: task.contextId }
        const value = { ...ids, artifact, append, lastChunk: false, metadata: undefined }
        yield { payload: { $case: 'artifactUpdate', value } }
      }
      const ended = await this.#ended(task, event, text)
      if (!ended) continue
      const { id: taskId, contextId } = ended.task
      const status = statusOf(ended.task)
      yield { payload: { $case: 'statusUpdate', value: { taskId, contextId, status, metadata: undefined } } }
      return
    }
  }

  /** The task after an event that ends its reply, or the stream of it. */
  async #ended(task: StoredTask, event: ReplyEvent, text: string): Promise<Known | undefined> {
    const { store } = this.#services
    if (event.type === 'end' && event.state !== 'idle')
      return { task: (await store.end(task, ENDS[event.state], event.error)) ?? task, text }
    if (event.type !== 'end' && event.type !== 'error') return undefined
    return this.#know(task, true)
  }

  /**
   * The current state of a task, which may have ended without a process that noticed.
   * @param isRead whether the reply is wanted, too.
   */
  async #know(task: StoredTask, isRead: boolean): Promise<Known> {
    const { agent, conversations, store } = this.#services
    if (task.state !== 'working' && (task.state !== 'completed' || !isRead)) return { task, text: '' }
    const { state, text } = await conversations.readReply(agent, task.contextId, task.id)
    if (task.state !== 'working') return { task, text }
    const isUnderway = state === 'unknown' && Date.now() - task.createdAt.getTime() < UNDERWAY_MS
    if (state === 'working' || isUnderway) return { task, text }
    const reason = state === 'failed' ? text : LOST
    const ended = state === 'unknown' ? 'failed' : state
    return { task: (await store.end(task, ended, ended === 'failed' ? reason : undefined)) ?? task, text }
  }
}

async function noPush(): Promise<never> {
  throw new PushNotificationNotSupportedError({ message: 'The agent sends no push notifications' })
}

const ENDS = { done: 'completed', stopped: 'canceled', failed: 'failed' } as const

const STATES: { [state in State]?: TaskState } = {
  [State.TASK_STATE_WORKING]: 'working',
  [State.TASK_STATE_COMPLETED]: 'completed',
  [State.TASK_STATE_FAILED]: 'failed',
  [State.TASK_STATE_CANCELED]: 'canceled',
}
