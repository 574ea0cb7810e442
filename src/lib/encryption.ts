/** Secret values at rest: AES-256-GCM, under a key of each workspace  */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import { readOrCreateSecret } from './files.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

export class Encryption {
  readonly #key: string

  /** @param key SECRETS_KEY; empty when the operator wants no secrets to be stored. */
  constructor(key: string) {
    this.#key = key
  }

  /** Whether there is a key. */
  get configured(): boolean {
    return this.#key !== ''
  }

  /** Encrypts a text. `context` says what it is (a row's id): only the same one decrypts it. */
  encrypt(workspaceId: string, context: string, text: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#workspaceKey(workspaceId), nonce)
    cipher.setAAD(Buffer.from(context))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()])
  }

  /** @throws when it was encrypted with another key, for another workspace or context, or was changed. */
  decrypt(workspaceId: string, context: string, ciphertext: Uint8Array): string {
    // Node takes shorter tags as well, and those can be guessed.
    if (ciphertext.length < NONCE_BYTES + TAG_BYTES) throw new Error('not a ciphertext')
    const nonce = ciphertext.subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv(ALGORITHM, this.#workspaceKey(workspaceId), nonce, {
      authTagLength: TAG_BYTES,
    })
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES))
    const text = decipher.update(ciphertext.subarray(NONCE_BYTES, -TAG_BYTES))
    return Buffer.concat([text, decipher.final()]).toString('utf8')
  }

  #workspaceKey(workspaceId: string): Buffer {
    if (!this.configured) throw new Error('SECRETS_KEY is not set')
    return Buffer.from(hkdfSync('sha256', this.#key, workspaceId, 'berth secrets', 32))
  }
}

/** The encryption of the settings; its key is made under the data folder where none is set. */
export function loadEncryption(config: Config): Encryption {
  return new Encryption(config.SECRETS_KEY ?? readOrCreateSecret(config.BERTH_DATA_DIR, 'secrets.key'))
}
