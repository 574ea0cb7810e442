/** Spares: agents that run before anybody asks for them. A new agent takes one over, and need not wait for its engine. */
import { uuidv7 } from 'uuidv7'
import type { Config } from '../config.ts'
import { inTransaction, type PrismaClient, type Transaction } from '../db/prisma.ts'
import type { Plan } from '../db/statements/plan.ts'
import { POOL_WORKSPACE, takeSpare } from '../db/statements/pool.ts'
import { ApiError } from '../errors.ts'
import { newAgentId } from '../lib/agent-id.ts'
import type { InputOf } from '../operations/catalog.ts'
import { enqueue } from '../operations/enqueue.ts'
import { type Agent, newGatewayToken } from './agent.ts'
import { deleteAgent } from './lifecycle/change.ts'

/** The part of a spare that a new agent takes over. */
export interface Spare {
  /** Columns of the new agent's row: its sandbox has this id and token already. */
  columns: { agentId: string; gatewayToken: string; address: string | null; epoch: number }
  /** From this the keys are derived that its gateway already has, see `model-access.ts`. */
  seed: string
  /** The settings that it was started with, as a text. */
  settings: string | undefined
}

/**
 * Takes a spare out of the pool for a new agent, in the transaction that creates it. A spare is handed out once: its
 * row is gone with the commit, and comes back if there is none.
 * @returns undefined if there is no spare that fits.
 */
export async function adoptSpare(
  tx: Transaction,
  config: Pick<Config, 'BERTH_AGENT_LIMITS'>,
  { engineVersion, plan }: { engineVersion: string; plan: Plan },
): Promise<Spare | undefined> {
  const { diskMb } = config.BERTH_AGENT_LIMITS
  // A sandbox with another limit would be made again.
  if ((plan.agentDiskMb ?? diskMb) !== diskMb) return undefined
  const spare = await takeSpare.first(tx, engineVersion)
  if (!spare) return undefined
  const { agentId, gatewayToken, address, epoch } = spare
  return {
    columns: { agentId, gatewayToken, address, epoch },
    seed: `${spare.id} ${spare.operationId}`,
    settings: spare.settings ?? undefined,
  }
}

/** The input of the operation that starts the new owner of a spare, if there is one. */
export const inputOf = (spare: Spare | undefined): InputOf<'agent.provision'> => ({
  spare: spare?.seed,
  spareSettings: spare?.settings,
})

/** Adds a spare to the pool, and enqueues its start. @param settings what it is started with, as a text. */
export async function addSpare(
  prisma: PrismaClient,
  { engineVersion, settings }: { engineVersion: string; settings: string },
): Promise<void> {
  const id = uuidv7()
  const data = {
    id,
    workspaceId: POOL_WORKSPACE,
    userId: POOL_WORKSPACE,
    name: 'spare',
    description: settings,
    engine: 'openclaw',
    engineVersion,
    status: 'starting',
    agentId: newAgentId(),
    gatewayToken: newGatewayToken(),
  }
  await inTransaction(prisma, async (tx) => {
    const { count } = await tx.agent.createMany({ data, skipDuplicates: true })
    // Otherwise the id is taken: the next pass tries another one.
    if (count) await enqueue(tx, 'agent.provision', data)
  })
}

/** Removes a spare, unless a new agent has taken it over. */
export async function removeSpare(
  prisma: PrismaClient,
  spare: Pick<Agent, 'id' | 'agentId' | 'workspaceId'>,
): Promise<void> {
  await deleteAgent(prisma, spare).catch((error) => {
    if (!(error instanceof ApiError)) throw error
  })
}
