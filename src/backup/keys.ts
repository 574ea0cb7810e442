/**
 * The keys of a Berth: without them, a backup has no usable agent secrets or API keys. A backup contains them only if a
 * passphrase is given, as an age file (https://age-encryption.org), which can be opened without Berth.
 */
import { createHmac } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Decrypter, Encrypter } from 'age-encryption'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { readIfExists, replaceFile } from '../lib/files.ts'
import { type Manifest, partOf } from './layout.ts'
import { BackupError, type BackupStore } from './store.ts'

export const KEYS_FILE = 'keys.age'

/** Settings, their fallback files under BERTH_DATA_DIR, and what is lost without the keys. */
export const KEYS = [
  { setting: 'JWT_KEY', file: 'jwt.key', opens: 'API keys' },
  { setting: 'SECRETS_KEY', file: 'secrets.key', opens: 'secrets and channels of agents' },
] as const

type KeyName = (typeof KEYS)[number]['setting']
export type Keys = Partial<Record<KeyName, string>>

const keysShape = z.partialRecord(z.enum(['JWT_KEY', 'SECRETS_KEY']), z.string())

/** The keys that this process can read. An empty key (SECRETS_KEY: no secrets) is omitted. */
export async function readKeys(config: Config): Promise<Keys> {
  const found: Keys = {}
  for (const { setting, file } of KEYS) {
    const key = config[setting] ?? (await readIfExists(join(config.BERTH_DATA_DIR, file)))?.trim()
    if (key) found[setting] = key
  }
  return found
}

/** A fingerprint that recognises a key without revealing it. */
const markOf = (key: string): string =>
  createHmac('sha256', key).update('berth backup').digest('hex').slice(0, 16)

export const marksOf = (keys: Keys): Record<string, string> =>
  Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, markOf(key)]))

export async function encryptKeys(keys: Keys, passphrase: string): Promise<Uint8Array> {
  const encrypter = new Encrypter()
  encrypter.setPassphrase(passphrase)
  return encrypter.encrypt(JSON.stringify(keys))
}

/** @throws BackupError if the passphrase is wrong. */
export async function decryptKeys(encrypted: Uint8Array, passphrase: string): Promise<Keys> {
  const decrypter = new Decrypter()
  decrypter.addPassphrase(passphrase)
  try {
    return keysShape.parse(JSON.parse(await decrypter.decrypt(encrypted, 'text')))
  } catch (error) {
    throw new BackupError(`${KEYS_FILE} does not open with this BERTH_BACKUP_PASSPHRASE`, { cause: error })
  }
}

/** Writes keys under the data folder, where the next start finds them. */
async function writeKeys(dataDir: string, keys: Keys): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  for (const { setting, file } of KEYS) {
    const key = keys[setting]
    if (key) await replaceFile(join(dataDir, file), `${key}\n`, 0o600)
  }
}

/**
 * Ensures that this Berth has the keys with which the rows were written.
 * @returns settings whose keys it took from the backup.
 * @throws BackupError that names each key that differs or is missing.
 */
export async function bringKeys(
  { store, config, passphrase }: { store: BackupStore; config: Config; passphrase?: string | undefined },
  name: string,
  manifest: Manifest,
): Promise<string[]> {
  const here = await readKeys(config)
  const marks = marksOf(here)
  const needed = KEYS.filter(({ setting }) => manifest.keys[setting])
  const other = needed.filter(({ setting }) => {
    const previous = config[`${setting}_PREVIOUS`]
    const known = [marks[setting], previous && markOf(previous)]
    return marks[setting] && !known.includes(manifest.keys[setting])
  })
  if (other.length > 0)
    throw new BackupError(
      other
        .map(({ setting, file, opens }) => {
          const place = config[setting] ? 'is set to' : `is, in ${join(config.BERTH_DATA_DIR, file)},`
          return `${setting}: ${place} another key than that of the backup, which opens its ${opens}`
        })
        .join('\n'),
    )
  const missing = needed.filter(({ setting }) => !marks[setting])
  if (missing.length === 0) return []
  const encrypted = KEYS_FILE in manifest.files
  if (encrypted && passphrase) {
    const keys = await decryptKeys(
      (await store.read(partOf(name, KEYS_FILE))) ?? new Uint8Array(),
      passphrase,
    )
    const wanted: Keys = Object.fromEntries(missing.map(({ setting }) => [setting, keys[setting]]))
    await writeKeys(config.BERTH_DATA_DIR, wanted)
    return missing.map(({ setting }) => setting)
  }
  const advice = encrypted ? 'set BERTH_BACKUP_PASSPHRASE to take it out of the backup, or ' : ''
  throw new BackupError(
    missing
      .map(
        ({ setting, file, opens }) =>
          `${setting}: is not here; ${advice}set it to the key of the backed up Berth or put that into ` +
          `${join(config.BERTH_DATA_DIR, file)}. Without it (--without-keys) its ${opens} are lost`,
      )
      .join('\n'),
  )
}
