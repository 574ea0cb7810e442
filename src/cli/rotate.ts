/** `berth keys rotate-secrets` and `berth keys rotate-agent-tokens`. */

import { styleText } from 'node:util'
import { findWorkspace } from '../accounts/workspaces.ts'
import { rotateSecrets } from '../agents/secrets/rotation.ts'
import { countAgents, rotateGatewayTokens } from '../agents/tokens/token-rotation.ts'
import { ConfigError } from '../errors.ts'
import { loadEncryption } from '../lib/encryption.ts'
import { audited } from './audited.ts'

/**
 * Re-encrypts with SECRETS_KEY everything that is encrypted with the previous key. The exit code is 1 if neither key
 * decrypts a value.
 */
export function runRotateSecrets(): Promise<void> {
  return audited('keys rotate-secrets', async ({ prisma, config }) => {
    if (!config.SECRETS_KEY_PREVIOUS)
      throw new ConfigError('SECRETS_KEY_PREVIOUS: set it to the key that secrets were encrypted with so far')
    const encryption = loadEncryption(config)
    if (!encryption.configured) throw new ConfigError('SECRETS_KEY: set it to the new key')
    const { renewed, readable, unreadable } = await rotateSecrets(prisma, encryption)
    for (const name of unreadable) console.log(`${styleText('red', '✘')} ${name}: neither key decrypts it`)
    console.log(`${renewed} encrypted anew, ${readable} have SECRETS_KEY now`)
    if (unreadable.length > 0) process.exitCode = 1
    else console.log('SECRETS_KEY_PREVIOUS is no longer needed, except for earlier backups')
  })
}

/** Number of agents between two progress lines. */
const STEP = 100

interface Options {
  workspace?: string
  agent?: string
  resume?: Date
}

/** Rotates gateway tokens of agents. It prints none: clients read theirs from the API. */
export function rotateAgentTokens({ workspace, agent, resume }: Options): Promise<void> {
  return audited('keys rotate-agent-tokens', async ({ prisma }, about) => {
    const begun = resume ?? new Date()
    const workspaceId = workspace && (await findWorkspace(prisma, workspace)).id
    Object.assign(about, {
      ...(workspaceId && { workspaceId }),
      resource: agent ? `agents/${agent}` : 'agents',
    })
    const rotation = { begun, workspaceId, agentId: agent }
    const of = await countAgents(prisma, rotation)
    if (of === 0) return console.log('there are no such agents')
    console.log(`to resume after an interruption, add --resume ${begun.toISOString()}`)
    const done = await rotateGatewayTokens(prisma, rotation, (done) => {
      if (done % STEP === 0 && done < of) console.log(`${done} of ${of}`)
    })
    console.log(`${done} of ${of} agents have new tokens, and restart`)
  })
}
