/** Forks an agent: the rows of its forks, and the operations that save the agent and start them, in one transaction. */
import { uuidv7 } from 'uuidv7'
import { lock } from '../../db/advisory-locks.ts'
import { inTransaction, type Transaction } from '../../db/prisma.ts'
import { ApiError, forbidden, messages, notFound } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { enqueue } from '../../operations/enqueue.ts'
import { type Agent, findAgentById, lockAgent } from '../agent.ts'
import type { AgentServices } from '../agent-route.ts'
import { agentsLeft, type Created, findCreated, insertStarting } from '../lifecycle/create.ts'
import { findSnapshot, latestSnapshot, type StoredSnapshot } from '../snapshots/index.ts'
import { adoptSpare, inputOf, type Spare } from '../spares.ts'
import type { ForkBody } from './fork-schema.ts'
import { copyEngineState, copySnapshot } from './hand-over.ts'

/** Maximum length of an agent's name. */
const NAME_LENGTH = 100
const LIMIT = { error: messages.agentLimit, code: 'agent_limit' } as const

/** A fork, or why it was not made. */
export type Fork = Created | typeof LIMIT

/**
 * Makes forks of an agent. One operation saves the agent, if it runs, and hands its workspace to all of them; each has
 * another operation that starts it. A repeat with the same idempotency key finds the forks of the first request, and
 * makes those that the limit did not allow then.
 * @throws ApiError 403 if the plan allows no fork. 404 if the agent or the snapshot does not exist. 409 if the agent
 *   does not run and was never saved. 422 if the key was used for another request.
 */
export async function forkAgent(
  { prisma, encryption, config }: Pick<AgentServices, 'prisma' | 'encryption' | 'config'>,
  caller: Principal,
  agent: Agent,
  body: ForkBody,
  idempotencyKey: string | undefined,
): Promise<Fork[]> {
  const request = `agent.fork ${agent.agentId} ${JSON.stringify(body)}`
  const made = await inTransaction(prisma, async (tx) => {
    await lock(tx, 'newAgent', caller.workspaceId)
    await lockAgent(tx, agent)
    const parent = await findAgentById(tx, agent.id)
    if (!parent) throw notFound(messages.noAgent)
    const keys = keysOf(idempotencyKey, body.count)
    const forks: (Fork | undefined)[] = []
    for (const key of keys)
      forks.push(key === undefined ? undefined : await findCreated(tx, caller, key, request))
    if (!forks.includes(undefined)) return forks as Fork[]
    let left = await agentsLeft(tx, caller)
    if (left < 1 && forks.every((fork) => fork === undefined)) throw forbidden(LIMIT.error, LIMIT.code)
    const snapshot = await findStart(tx, parent, body.snapshotCid)
    // One save for all of them: they begin with the same workspace.
    const awaits = isUp(parent) && left > 0 ? await enqueue(tx, 'agent.sync', parent) : null
    for (const [index, fork] of forks.entries()) {
      if (fork) continue
      forks[index] = left-- < 1 ? LIMIT : await insert(index)
    }
    crashPoint('before-commit')
    return forks as Fork[]

    async function insert(index: number): Promise<Created> {
      const name = nameOf(parent as Agent, body, index)
      const { engineVersion } = parent as Agent
      const spare = await adoptSpare(tx, config, { engineVersion, plan: caller.plan })
      const fork = await insertFork(tx, caller, parent as Agent, { name, spare })
      if (snapshot) await copySnapshot(tx, fork, snapshot)
      const ciphertext = awaits ? null : await copyEngineState(tx, encryption, parent as Agent, fork)
      await tx.engineState.create({ data: { agentId: fork.id, pending: true, awaits, ciphertext } })
      const options = { idempotencyKey: keys[index], request, input: inputOf(spare) }
      return { agent: fork, operationId: await enqueue(tx, 'agent.provision', fork, options) }
    }
  })
  crashPoint('after-commit')
  return made
}

const isUp = ({ status }: Agent) => status !== 'not_running'

/** The key of each fork: a client cannot send one with a line break. */
const keysOf = (key: string | undefined, count: number): (string | undefined)[] =>
  Array.from({ length: count }, (_, index) => (key === undefined || index === 0 ? key : `${key}\n${index}`))

/** `Ada fork`, or `Ada fork 2` of several. */
function nameOf(parent: Agent, { name, count }: ForkBody, index: number): string {
  const number = count > 1 ? ` ${index + 1}` : ''
  const suffix = name == null ? ` fork${number}` : number
  return `${(name ?? parent.name).slice(0, NAME_LENGTH - suffix.length).trimEnd()}${suffix}`.toWellFormed()
}

/** The snapshot to begin with; undefined if it is still to be saved. @throws ApiError 404, 409 */
async function findStart(
  tx: Transaction,
  parent: Agent,
  cid: string | null | undefined,
): Promise<StoredSnapshot | undefined> {
  if (cid != null) {
    const found = await findSnapshot(tx, parent, cid)
    if (!found) throw notFound(messages.snapshotNotFound)
    return found
  }
  if (isUp(parent)) return undefined
  const newest = await latestSnapshot(tx, parent)
  if (newest) return newest
  throw new ApiError(409, 'never_saved', 'The agent does not run, and its workspace was never saved')
}

/** Inserts the row of a fork, with everything that Berth knows of its parent and does not identify it. */
async function insertFork(
  tx: Transaction,
  { workspaceId, userId }: Principal,
  parent: Agent,
  { name, spare }: { name: string; spare: Spare | undefined },
): Promise<Agent> {
  const { description, vibe, emoji, userName, userEmail, engine, engineVersion, localModel } = parent
  const data = {
    ...{ workspaceId, userId, name, description, vibe, emoji, userName, userEmail, engine, engineVersion },
    ...(localModel && { localModel: { ...localModel } }),
    forkedFrom: parent.agentId,
  }
  const fork = await insertStarting(tx, data, spare)
  const ids = [fork.id, parent.id]
  // A paused agent's forks call no model either, until someone resumes them.
  await tx.query(
    `UPDATE agent fork SET manifest = parent.manifest, model_paused_at = parent.model_paused_at,
       model_paused_by = parent.model_paused_by
     FROM agent parent WHERE fork.id = $1 AND parent.id = $2`,
    ids,
  )
  for (const table of ['secret', 'skill'] as const)
    await tx.query(
      `INSERT INTO agent_${table} (agent_id, ${COPIED[table]}) SELECT $1, ${COPIED[table]} FROM agent_${table} WHERE agent_id = $2`,
      ids,
    )
  const ofParent = { where: { agentId: parent.id } }
  const policy = await tx.egressPolicy.findUnique({ ...ofParent, omit: { updatedAt: true } })
  if (policy) await tx.egressPolicy.create({ data: { ...policy, id: uuidv7(), agentId: fork.id } })
  const budget = await tx.modelBudget.findUnique({
    ...ofParent,
    omit: { minute: true, minuteRequests: true, updatedAt: true },
  })
  if (budget) await tx.modelBudget.create({ data: { ...budget, id: uuidv7(), agentId: fork.id } })
  return fork
}

const COPIED = { secret: 'secret_id', skill: 'skill_id, version_id' }
