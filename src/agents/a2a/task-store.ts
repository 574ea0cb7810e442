/** Rows of A2A tasks: the conversation of each message, and the state of the reply. */
import { uuidv7 } from 'uuidv7'
import type { PrismaClient } from '../../db/prisma.ts'
import type { Agent } from '../agent.ts'

const KEPT_MS = 30 * 86_400_000
const MAX_REASON = 4000

/** The states of a task that has ended are final. */
export type TaskState = 'working' | 'completed' | 'failed' | 'canceled'

export interface StoredTask {
  id: string
  contextId: string
  state: TaskState
  /** Why it failed. */
  reason: string | null
  createdAt: Date
  changedAt: Date
}

interface Filter {
  contextId?: string | undefined
  state?: TaskState | undefined
  changedSince?: Date | undefined
}

export class TaskStore {
  readonly #prisma: PrismaClient
  readonly #agentId: string

  constructor(prisma: PrismaClient, { id }: Pick<Agent, 'id'>) {
    this.#prisma = prisma
    this.#agentId = id
  }

  /** Adds a task, and removes those of the agent that are too old. */
  async add(contextId: string): Promise<StoredTask> {
    const agentId = this.#agentId
    const changedAt = { lt: new Date(Date.now() - KEPT_MS) }
    await this.#prisma.a2aTask.deleteMany({ where: { agentId, changedAt } })
    return strip(
      await this.#prisma.a2aTask.create({ data: { id: uuidv7(), agentId, contextId, state: 'working' } }),
    )
  }

  /** Removes a task whose message did not reach the agent. */
  async remove({ id }: StoredTask): Promise<void> {
    await this.#prisma.a2aTask.deleteMany({ where: { id } })
  }

  async find(id: string): Promise<StoredTask | undefined> {
    const found = await this.#prisma.a2aTask.findFirst({ where: { id, agentId: this.#agentId } })
    return found ? strip(found) : undefined
  }

  /** The end of a task, unless it had ended before. */
  async end({ id }: StoredTask, state: TaskState, reason?: string): Promise<StoredTask | undefined> {
    await this.#prisma.a2aTask.updateMany({
      where: { id, state: 'working' },
      data: { state, reason: reason?.slice(0, MAX_REASON).toWellFormed() ?? null, changedAt: new Date() },
    })
    return this.find(id)
  }

  /** A page of tasks, the latest change first. @param after the last task of the previous page. */
  async list(
    filter: Filter,
    { limit, after }: { limit: number; after?: Pick<StoredTask, 'id' | 'changedAt'> | undefined },
  ): Promise<{ tasks: StoredTask[]; total: number }> {
    const { contextId, state, changedSince } = filter
    const where = {
      agentId: this.#agentId,
      ...(contextId && { contextId }),
      ...(state && { state }),
      ...(changedSince && { changedAt: { gte: changedSince } }),
    }
    const { id, changedAt } = after ?? {}
    const isLater = id &&
      changedAt && { OR: [{ changedAt: { lt: changedAt } }, { changedAt, id: { lt: id } }] }
    const [rows, total] = await Promise.all([
      this.#prisma.a2aTask.findMany({
        where: isLater ? { AND: [where, isLater] } : where,
        orderBy: [{ changedAt: 'desc' }, { id: 'desc' }],
        take: limit,
      }),
      this.#prisma.a2aTask.count({ where }),
    ])
    return { tasks: rows.map(strip), total }
  }
}

type TaskRow = Omit<StoredTask, 'state'> & { state: string }
const strip = ({ id, contextId, state, reason, createdAt, changedAt }: TaskRow): StoredTask => ({
  ...{ id, contextId, reason, createdAt, changedAt },
  state: state as TaskState,
})
