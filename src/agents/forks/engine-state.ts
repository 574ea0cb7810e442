/**
 * The parts of an agent that are only in its engine: its config and its tasks. Each save of the workspace stores them,
 * so that a fork of an agent that does not run has them, too.
 */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Prisma } from '../../db/prisma.ts'
import type { Encryption } from '../../lib/encryption.ts'
import type { Agent } from '../agent.ts'
import { type Job, job } from '../tasks/index.ts'

/** The limit of a row, as JSON; a config has at most 1 MiB. */
const MAX_BYTES = 4_194_304

const engineState = z.object({
  /** openclaw.json without the keys that belong to the operator; undefined if unknown. */
  config: z.record(z.string(), z.unknown()).optional(),
  /** In the engine's format; undefined if unknown. */
  tasks: z.array(job).optional(),
})
export interface EngineState {
  config?: Record<string, unknown> | undefined
  tasks?: Job[] | undefined
}

type Owner = Pick<Agent, 'id' | 'workspaceId'>

/** The encryption context of an agent's engine state. */
export const engineStateContext = ({ id }: Pick<Owner, 'id'>) => `engine state:${id}`

/** The saved state of an agent's engine; empty if it was not saved, or no longer decrypts. */
export async function readEngineState(
  db: Prisma.TransactionClient,
  encryption: Encryption,
  agent: Owner,
): Promise<EngineState> {
  const row = await db.engineState.findUnique({ where: { agentId: agent.id } })
  if (!row?.ciphertext) return {}
  try {
    const text = encryption.decrypt(agent.workspaceId, engineStateContext(agent), row.ciphertext)
    return engineState.parse(JSON.parse(text))
  } catch {
    return {}
  }
}

/** Encrypts a state; null if it is unknown, too long, or there is no key. */
export function encryptEngineState(
  encryption: Encryption,
  agent: Owner,
  state: EngineState,
): Uint8Array<ArrayBuffer> | null {
  const text = JSON.stringify(state)
  if (text === '{}' || Buffer.byteLength(text) > MAX_BYTES || !encryption.configured) return null
  return Uint8Array.from(encryption.encrypt(agent.workspaceId, engineStateContext(agent), text))
}

/** Stores the current state of an agent's engine. Unknown parts stay as they were saved last. */
export async function saveEngineState(
  db: Prisma.TransactionClient,
  encryption: Encryption,
  agent: Owner,
  state: EngineState,
): Promise<void> {
  const before = await readEngineState(db, encryption, agent)
  const { config = before.config, tasks = before.tasks } = state
  const after = { ...(config && { config }), ...(tasks && { tasks }) }
  if (isDeepStrictEqual(after, before)) return
  const ciphertext = encryptEngineState(encryption, agent, after)
  if (!ciphertext) return
  // Until a fork has started, its engine lacks what the row has.
  const { count } = await db.engineState.updateMany({
    where: { agentId: agent.id, pending: false },
    data: { ciphertext },
  })
  if (count > 0) return
  await db.engineState.createMany({ data: { agentId: agent.id, ciphertext }, skipDuplicates: true })
}
