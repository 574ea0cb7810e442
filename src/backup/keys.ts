/**
 * The keys of a Berth: without them a backup has no agents' secrets and no API keys that work. They are in a backup only
 * where a passphrase is given, as a file of age (https://age-encryption.org), so that it can be opened without Berth.
 */
import { createHmac } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Decrypter, Encrypter } from 'age-encryption'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { readIfExists, replaceFile } from '../lib/files.ts'
import { BackupError } from './folder.ts'

export const KEYS_FILE = 'keys.age'

/** Settings, the files that stand in for them under BERTH_DATA_DIR, and what is lost without them. */
export const KEYS = [
  { setting: 'JWT_KEY', file: 'jwt.key', opens: 'API keys' },
  { setting: 'SECRETS_KEY', file: 'secrets.key', opens: 'secrets and channels of agents' },
] as const

type KeyName = (typeof KEYS)[number]['setting']
export type Keys = Partial<Record<KeyName, string>>

const keysShape = z.partialRecord(z.enum(['JWT_KEY', 'SECRETS_KEY']), z.string())

/** The keys that this process can see; one that is empty (SECRETS_KEY: no secrets) is none. */
export async function readKeys(config: Config): Promise<Keys> {
  const found: Keys = {}
  for (const { setting, file } of KEYS) {
    const key = config[setting] ?? (await readIfExists(join(config.BERTH_DATA_DIR, file)))?.trim()
    if (key) found[setting] = key
  }
  return found
}

/** By it a key is recognised; it tells nothing of the key. */
export const markOf = (key: string): string =>
  createHmac('sha256', key).update('berth backup').digest('hex').slice(0, 16)

export const marksOf = (keys: Keys): Record<string, string> =>
  Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, markOf(key)]))

export async function encryptKeys(keys: Keys, passphrase: string): Promise<Uint8Array> {
  const encrypter = new Encrypter()
  encrypter.setPassphrase(passphrase)
  return encrypter.encrypt(JSON.stringify(keys))
}

/** @throws BackupError where the passphrase is another one. */
export async function decryptKeys(encrypted: Uint8Array, passphrase: string): Promise<Keys> {
  const decrypter = new Decrypter()
  decrypter.addPassphrase(passphrase)
  try {
    return keysShape.parse(JSON.parse(await decrypter.decrypt(encrypted, 'text')))
  } catch (error) {
    throw new BackupError(`${KEYS_FILE} does not open with this BERTH_BACKUP_PASSPHRASE`, { cause: error })
  }
}

/** Writes keys under the data folder, where a start looks for them. */
export async function writeKeys(dataDir: string, keys: Keys): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  for (const { setting, file } of KEYS) {
    const key = keys[setting]
    if (key) await replaceFile(join(dataDir, file), `${key}\n`, 0o600)
  }
}
