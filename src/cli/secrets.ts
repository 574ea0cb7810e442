/** `berth keys rotate-secrets`: what is encrypted with the previous SECRETS_KEY is encrypted with the one that is set. */
import { styleText } from 'node:util'
import { rotateSecrets } from '../agents/secrets/rotation.ts'
import { ConfigError } from '../errors.ts'
import { loadEncryption } from '../lib/encryption.ts'
import { withDatabase } from './database.ts'

/** The exit code is 1 where a value decrypts with neither key. */
export function runRotateSecrets(): Promise<void> {
  return withDatabase(async ({ prisma, config }) => {
    if (!config.SECRETS_KEY_PREVIOUS)
      throw new ConfigError('SECRETS_KEY_PREVIOUS: set it to the key that secrets were encrypted with so far')
    const encryption = loadEncryption(config)
    if (!encryption.configured) throw new ConfigError('SECRETS_KEY: set it to the key that is to be used')
    const { renewed, readable, unreadable } = await rotateSecrets(prisma, encryption)
    for (const name of unreadable) console.log(`${styleText('red', '✘')} ${name}: neither key decrypts it`)
    console.log(`${renewed} encrypted anew, ${readable} have SECRETS_KEY now`)
    if (unreadable.length > 0) process.exitCode = 1
    else console.log('SECRETS_KEY_PREVIOUS is needed no longer, except for backups that were made before')
  })
}
