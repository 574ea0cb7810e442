import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Sealer } from './sealer.ts'

/** What PostgreSQL and the environment take: whole Unicode. */
const text = fc.string({ unit: 'grapheme', maxLength: 200 })
const name = fc.string({ maxLength: 40 })
const key = fc.string({ minLength: 32, maxLength: 64 })

describe('a sealed text', () => {
  it('opens as it was', () => {
    fc.assert(
      fc.property(key, name, name, text, (key, workspace, context, value) => {
        const sealed = new Sealer(key).seal(workspace, context, value)
        // Another process, and bytes as the database driver gives them.
        assert.equal(new Sealer(key).open(workspace, context, new Uint8Array(sealed)), value)
      }),
    )
  })

  it('opens under its own key, workspace and context only', () => {
    const identity = fc.record({ key, workspace: name, context: name })
    fc.assert(
      fc.property(
        identity,
        fc.record({ key, workspace: name, context: name }, { requiredKeys: [] }),
        text,
        (own, change, value) => {
          const other = { ...own, ...change }
          fc.pre(JSON.stringify(other) !== JSON.stringify(own))
          const sealed = new Sealer(own.key).seal(own.workspace, own.context, value)
          assert.throws(() => new Sealer(other.key).open(other.workspace, other.context, sealed))
        },
      ),
    )
  })

  it('opens with every bit as it was only', () => {
    const sealer = new Sealer('k'.repeat(32))
    fc.assert(
      fc.property(text, fc.nat(), fc.nat(7), (value, at, bit) => {
        const sealed = sealer.seal('workspace', 'context', value)
        const i = at % sealed.length
        sealed.writeUInt8(sealed.readUInt8(i) ^ (1 << bit), i)
        assert.throws(() => sealer.open('workspace', 'context', sealed))
      }),
    )
  })

  it('opens whole only', () => {
    const sealer = new Sealer('k'.repeat(32))
    const sealed = sealer.seal('workspace', 'context', 'value')
    for (let length = 0; length < sealed.length; length++) {
      assert.throws(() => sealer.open('workspace', 'context', sealed.subarray(0, length)))
      assert.throws(() => sealer.open('workspace', 'context', sealed.subarray(sealed.length - length)))
    }
    assert.throws(() => sealer.open('workspace', 'context', Buffer.concat([sealed, Buffer.of(0)])))
  })

  it('shows neither the text nor that it is the same as another one', () => {
    const sealer = new Sealer('k'.repeat(32))
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 4, maxLength: 60 }), (value) => {
        const [one, two] = [sealer.seal('w', 'c', value), sealer.seal('w', 'c', value)]
        assert.ok(!one.includes(Buffer.from(value)))
        assert.notDeepEqual(one, two)
      }),
    )
  })

  it('cannot be had without a key', () => {
    const sealer = new Sealer('')
    assert.equal(sealer.configured, false)
    assert.throws(() => sealer.seal('workspace', 'context', 'value'), /SECRETS_KEY/)
    const sealed = new Sealer('k'.repeat(32)).seal('workspace', 'context', 'value')
    assert.throws(() => sealer.open('workspace', 'context', sealed), /SECRETS_KEY/)
  })
})
