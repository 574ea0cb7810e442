/** Secret values at rest: AES-256-GCM, under a key of each workspace. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import { readOrCreateSecret } from './files.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

export class Encryption {
  readonly #key: string
  readonly #previousKey: string | undefined

  /**
   * @param key SECRETS_KEY; empty when the operator wants no secrets to be stored.
   * @param previousKey SECRETS_KEY_PREVIOUS, which decrypts as well.
   */
  constructor(key: string, previousKey?: string) {
    this.#key = key
    this.#previousKey = previousKey
  }

  /** A key is set. */
  get configured(): boolean {
    return this.#key !== ''
  }

  /** Encrypts a text. `context` says what it is (a row's id): only the same one decrypts it. */
  encrypt(workspaceId: string, context: string, text: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#workspaceKey(this.#key, workspaceId), nonce)
    cipher.setAAD(Buffer.from(context))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()])
  }

  /** @throws when it was encrypted with another key, for another workspace or context, or was changed. */
  decrypt(workspaceId: string, context: string, ciphertext: Uint8Array): string {
    try {
      return this.#decryptWith(this.#key, workspaceId, context, ciphertext)
    } catch (error) {
      if (!this.#previousKey) throw error
      return this.#decryptWith(this.#previousKey, workspaceId, context, ciphertext)
    }
  }

  /** The same text under the current key; undefined where it has that one. @throws as `decrypt`. */
  renew(workspaceId: string, context: string, ciphertext: Uint8Array): Buffer | undefined {
    try {
      this.#decryptWith(this.#key, workspaceId, context, ciphertext)
      return undefined
    } catch {
      return this.encrypt(workspaceId, context, this.decrypt(workspaceId, context, ciphertext))
    }
  }

  #decryptWith(key: string, workspaceId: string, context: string, ciphertext: Uint8Array): string {
    // Node takes shorter tags as well, and those can be guessed.
    if (ciphertext.length < NONCE_BYTES + TAG_BYTES) throw new Error('not a ciphertext')
    const nonce = ciphertext.subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv(ALGORITHM, this.#workspaceKey(key, workspaceId), nonce, {
      authTagLength: TAG_BYTES,
    })
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES))
    const text = decipher.update(ciphertext.subarray(NONCE_BYTES, -TAG_BYTES))
    return Buffer.concat([text, decipher.final()]).toString('utf8')
  }

  #workspaceKey(key: string, workspaceId: string): Buffer {
    if (!key) throw new Error('SECRETS_KEY is not set')
    return Buffer.from(hkdfSync('sha256', key, workspaceId, 'berth secrets', 32))
  }
}

/** The encryption of the settings; its key is made under the data folder where none is set. */
export function loadEncryption(config: Config): Encryption {
  const key = config.SECRETS_KEY ?? readOrCreateSecret(config.BERTH_DATA_DIR, 'secrets.key')
  return new Encryption(key, config.SECRETS_KEY_PREVIOUS)
}
