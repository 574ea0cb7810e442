/** Encrypts secret values at rest: AES-256-GCM, with a key per workspace. */
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
   * @param key SECRETS_KEY; empty if the operator does not want secrets to be stored.
   * @param previousKey SECRETS_KEY_PREVIOUS, which also decrypts.
   */
  constructor(key: string, previousKey?: string) {
    this.#key = key
    this.#previousKey = previousKey
  }

  /** Whether a key is set. */
  get configured(): boolean {
    return this.#key !== ''
  }

  /** Encrypts a text. `context` identifies it (a row's id): only the same context decrypts it. */
  encrypt(workspaceId: string, context: string, text: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#workspaceKey(this.#key, workspaceId), nonce)
    cipher.setAAD(Buffer.from(context))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()])
  }

  /** @throws if it was encrypted with another key, for another workspace or context, or was changed. */
  decrypt(workspaceId: string, context: string, ciphertext: Uint8Array): string {
    try {
      return this.#decryptWith(this.#key, workspaceId, context, ciphertext)
    } catch (error) {
      if (!this.#previousKey) throw error
      return this.#decryptWith(this.#previousKey, workspaceId, context, ciphertext)
    }
  }

  /** Re-encrypts with the current key; undefined if it already uses that key. @throws as `decrypt`. */
  renew(workspaceId: string, context: string, ciphertext: Uint8Array): Buffer | undefined {
    try {
      this.#decryptWith(this.#key, workspaceId, context, ciphertext)
      return undefined
    } catch {
      return this.encrypt(workspaceId, context, this.decrypt(workspaceId, context, ciphertext))
    }
  }

  #decryptWith(key: string, workspaceId: string, context: string, ciphertext: Uint8Array): string {
    // Node also accepts shorter tags, which can be guessed.
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

/** Creates the encryption from the settings; if no key is set, it is created under the data folder. */
export function loadEncryption(config: Config): Encryption {
  const key = config.SECRETS_KEY ?? readOrCreateSecret(config.BERTH_DATA_DIR, 'secrets.key')
  return new Encryption(key, config.SECRETS_KEY_PREVIOUS)
}
