/** Gives forks what they begin with: a snapshot of the agent that they are forks of, and the state of its engine. */
import type { Prisma, Transaction } from '../../db/prisma.ts'
import { lockAgentRow } from '../../db/statements/agents.ts'
import type { Encryption } from '../../lib/encryption.ts'
import { type Agent, lockAgent } from '../agent.ts'
import { insertSnapshot, latestSnapshot, type StoredSnapshot } from '../snapshots/index.ts'
import { type EngineState, encryptEngineState, readEngineState } from './engine-state.ts'

type Parent = Pick<Agent, 'id' | 'workspaceId'>
type Fork = Pick<Agent, 'id' | 'workspaceId' | 'userId'>

/**
 * Copies a snapshot into the history of a fork, which keeps its content from then on. Its blocks are shared. The caller
 * has locked the parent's row, so that its own snapshot is not removed before the commit.
 */
export function copySnapshot(tx: Transaction, fork: Fork, snapshot: StoredSnapshot): Promise<void> {
  // Other branches and tags are at commits that no snapshot has.
  const extras = snapshot.extras && { ...snapshot.extras, refs: [] }
  return insertSnapshot(tx, fork, { ...snapshot, extras }, { changeSummary: null, contentDiff: null })
}

/** Copies the saved state of the parent's engine for a fork. @returns the ciphertext; null if there is none. */
export async function copyEngineState(
  tx: Prisma.TransactionClient,
  encryption: Encryption,
  parent: Parent,
  fork: Fork,
): Promise<Uint8Array<ArrayBuffer> | null> {
  return encryptEngineState(encryption, fork, forFork(await readEngineState(tx, encryption, parent)))
}

/** Channels stay with the parent, because two agents cannot share a bot, and no task runs twice unasked. */
function forFork({ config, tasks }: EngineState): EngineState {
  const { channels: _, bindings: __, ...kept } = config ?? {}
  return {
    ...(config && { config: kept }),
    ...(tasks && { tasks: tasks.map((task) => ({ ...task, enabled: false })) }),
  }
}

/**
 * Hands the parent's newest snapshot and the saved state of its engine to the forks that wait for an operation on it,
 * in the transaction that ends the operation. If it failed, they get what was saved before. Without any snapshot they
 * keep waiting, and do not start.
 */
export async function handOver(
  tx: Transaction,
  encryption: Encryption,
  parent: Parent,
  operationId: string,
): Promise<void> {
  const waiting = await tx.engineState.findMany({
    where: { awaits: operationId },
    select: { agent: { select: { id: true, workspaceId: true, userId: true } } },
  })
  if (waiting.length === 0) return
  await lockAgent(tx, parent)
  const newest = await latestSnapshot(tx, parent)
  const { fileManifest } = await tx.agent.findUniqueOrThrow({
    where: { id: parent.id },
    select: { fileManifest: true },
  })
  for (const { agent: fork } of waiting) {
    // It was deleted in the meantime.
    if (!(await lockAgentRow.first(tx, fork.id))) continue
    if (!(await latestSnapshot(tx, fork))) {
      if (!newest) continue
      await copySnapshot(tx, fork, newest)
      await tx.agent.update({ where: { id: fork.id }, data: { fileManifest } })
    }
    await tx.engineState.update({
      where: { agentId: fork.id },
      data: { awaits: null, ciphertext: await copyEngineState(tx, encryption, parent, fork) },
    })
  }
}
