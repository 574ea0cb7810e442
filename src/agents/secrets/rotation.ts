/**
 * Re-encrypts everything that SECRETS_KEY encrypts when the key changes: secrets, variables, channel tokens, saved
 * engine states, and the signing secrets of webhooks.
 */
import { eachRow, type PrismaClient } from '../../db/prisma.ts'
import type { Encryption } from '../../lib/encryption.ts'
import type { Channel } from '../channels/channel-schema.ts'
import { channelContext } from '../channels/channel-store.ts'
import { engineStateContext } from '../forks/engine-state.ts'

export interface Rotation {
  /** Number of values that had the previous key. */
  renewed: number
  /** Number of values that have the current key now. */
  readable: number
  /** Values that neither key decrypts, as `secret NAME of workspace ID` or `tokens of telegram of agent ID`. */
  unreadable: string[]
}

type Bytes = Uint8Array<ArrayBuffer>

/** An encrypted value in a row. */
interface Encrypted {
  name: string
  workspaceId: string
  context: string
  ciphertext: Bytes
  /** Replaces the value, unless the row has changed. */
  replace(ciphertext: Bytes): Promise<unknown>
}

/**
 * Re-encrypts with SECRETS_KEY everything that SECRETS_KEY_PREVIOUS encrypted. It may be interrupted and run again.
 * Reads all rows until none is left to renew: a process that only has the previous key may write one during a pass.
 */
export async function rotateSecrets(prisma: PrismaClient, encryption: Encryption): Promise<Rotation> {
  let renewed = 0
  for (;;) {
    const pass = await renewAll(prisma, encryption)
    renewed += pass.renewed
    if (pass.renewed === 0) return { ...pass, renewed }
  }
}

async function renewAll(prisma: PrismaClient, encryption: Encryption): Promise<Rotation> {
  const rotation: Rotation = { renewed: 0, readable: 0, unreadable: [] }
  for await (const value of readSecrets(prisma)) await renew(value, encryption, rotation)
  for await (const value of readChannelTokens(prisma)) await renew(value, encryption, rotation)
  for await (const value of readEngineStates(prisma)) await renew(value, encryption, rotation)
  for await (const value of readWebhookSecrets(prisma)) await renew(value, encryption, rotation)
  return rotation
}

async function renew(
  { name, workspaceId, context, ciphertext, replace }: Encrypted,
  encryption: Encryption,
  rotation: Rotation,
): Promise<void> {
  let anew: Buffer | undefined
  try {
    anew = encryption.renew(workspaceId, context, ciphertext)
  } catch {
    rotation.unreadable.push(name)
    return
  }
  rotation.readable++
  if (!anew) return
  await replace(Uint8Array.from(anew))
  rotation.renewed++
}

async function* readSecrets(prisma: PrismaClient): AsyncGenerator<Encrypted> {
  const select = { id: true, name: true, workspaceId: true, ciphertext: true }
  const secrets = eachRow((page) => prisma.secret.findMany({ ...page, select }))
  for await (const { id, name, workspaceId, ciphertext } of secrets)
    yield {
      name: `secret ${name} of workspace ${workspaceId}`,
      workspaceId,
      context: id,
      ciphertext,
      replace: (anew) => prisma.secret.updateMany({ where: { id, ciphertext }, data: { ciphertext: anew } }),
    }
}

async function* readChannelTokens(prisma: PrismaClient): AsyncGenerator<Encrypted> {
  const select = { id: true, agentId: true, workspaceId: true, channels: true }
  const agents = eachRow((page) => prisma.agent.findMany({ ...page, select }))
  for await (const { id, agentId, workspaceId, channels } of agents)
    for (const { channel, ciphertext } of channels) {
      if (!ciphertext) continue
      yield {
        name: `tokens of ${channel} of agent ${agentId}`,
        workspaceId,
        context: channelContext({ id }, channel as Channel),
        ciphertext,
        replace: (anew) =>
          prisma.agentChannel.updateMany({
            where: { agentId: id, channel, ciphertext },
            data: { ciphertext: anew },
          }),
      }
    }
}

async function* readEngineStates(prisma: PrismaClient): AsyncGenerator<Encrypted> {
  const select = { id: true, agentId: true, workspaceId: true, engineState: true }
  const agents = eachRow((page) => prisma.agent.findMany({ ...page, select }))
  for await (const { id, agentId, workspaceId, engineState } of agents) {
    const ciphertext = engineState?.ciphertext
    if (!ciphertext) continue
    yield {
      name: `engine state of agent ${agentId}`,
      workspaceId,
      context: engineStateContext({ id }),
      ciphertext,
      replace: (anew) =>
        prisma.engineState.updateMany({ where: { agentId: id, ciphertext }, data: { ciphertext: anew } }),
    }
  }
}

async function* readWebhookSecrets(prisma: PrismaClient): AsyncGenerator<Encrypted> {
  const select = { id: true, workspaceId: true, secret: true, formerSecret: true }
  const webhooks = eachRow((page) => prisma.webhook.findMany({ ...page, select }))
  for await (const { id, workspaceId, secret, formerSecret } of webhooks) {
    const of = { name: `secret of webhook ${id}`, workspaceId, context: id }
    const { updateMany } = prisma.webhook
    yield {
      ...of,
      ciphertext: secret,
      replace: (anew) => updateMany({ where: { id, secret }, data: { secret: anew } }),
    }
    if (formerSecret)
      yield {
        ...of,
        ciphertext: formerSecret,
        replace: (anew) => updateMany({ where: { id, formerSecret }, data: { formerSecret: anew } }),
      }
  }
}
