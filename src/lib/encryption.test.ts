import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Encryption } from './encryption.ts'

/** Text that PostgreSQL and the environment accept: whole Unicode characters. */
const text = fc.string({ unit: 'grapheme', maxLength: 200 })
const name = fc.string({ maxLength: 40 })
const key = fc.string({ minLength: 32, maxLength: 64 })

describe('an encrypted text', () => {
  it('an encrypted text decrypts to the original', () => {
    fc.assert(
      fc.property(key, name, name, text, (key, workspace, context, value) => {
        const ciphertext = new Encryption(key).encrypt(workspace, context, value)
        // Another process, and bytes as the database driver returns them.
        assert.equal(new Encryption(key).decrypt(workspace, context, new Uint8Array(ciphertext)), value)
      }),
    )
  })

  it('an encrypted text decrypts only with its own key, workspace and context', () => {
    const identity = fc.record({ key, workspace: name, context: name })
    fc.assert(
      fc.property(
        identity,
        fc.record({ key, workspace: name, context: name }, { requiredKeys: [] }),
        text,
        (own, change, value) => {
          const other = { ...own, ...change }
          fc.pre(JSON.stringify(other) !== JSON.stringify(own))
          const ciphertext = new Encryption(own.key).encrypt(own.workspace, own.context, value)
          assert.throws(() => new Encryption(other.key).decrypt(other.workspace, other.context, ciphertext))
        },
      ),
    )
  })

  it('an encrypted text does not decrypt if any bit changed', () => {
    const encryption = new Encryption('k'.repeat(32))
    fc.assert(
      fc.property(text, fc.nat(), fc.nat(7), (value, at, bit) => {
        const ciphertext = encryption.encrypt('workspace', 'context', value)
        const i = at % ciphertext.length
        ciphertext.writeUInt8(ciphertext.readUInt8(i) ^ (1 << bit), i)
        assert.throws(() => encryption.decrypt('workspace', 'context', ciphertext))
      }),
    )
  })

  it('an encrypted text opens only as a whole', () => {
    const encryption = new Encryption('k'.repeat(32))
    const ciphertext = encryption.encrypt('workspace', 'context', 'value')
    for (let length = 0; length < ciphertext.length; length++) {
      assert.throws(() => encryption.decrypt('workspace', 'context', ciphertext.subarray(0, length)))
      assert.throws(() =>
        encryption.decrypt('workspace', 'context', ciphertext.subarray(ciphertext.length - length)),
      )
    }
    assert.throws(() => encryption.decrypt('workspace', 'context', Buffer.concat([ciphertext, Buffer.of(0)])))
  })

  it('an encrypted text reveals neither its content nor whether two texts are equal', () => {
    const encryption = new Encryption('k'.repeat(32))
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 4, maxLength: 60 }), (value) => {
        const [one, two] = [encryption.encrypt('w', 'c', value), encryption.encrypt('w', 'c', value)]
        assert.ok(!one.includes(Buffer.from(value)))
        assert.notDeepEqual(one, two)
      }),
    )
  })

  it('an encrypted text cannot be created or decrypted without a key', () => {
    const encryption = new Encryption('')
    assert.equal(encryption.configured, false)
    assert.throws(() => encryption.encrypt('workspace', 'context', 'value'), /SECRETS_KEY/)
    const ciphertext = new Encryption('k'.repeat(32)).encrypt('workspace', 'context', 'value')
    assert.throws(() => encryption.decrypt('workspace', 'context', ciphertext), /SECRETS_KEY/)
  })
})
