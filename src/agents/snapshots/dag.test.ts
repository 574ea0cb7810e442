import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TreeChange } from '../../../agentd/repository/protocol.ts'
import { collectChanges } from './dag.ts'

const change = (path: string): TreeChange => ({
  path,
  mode: '100644',
  blob: '1'.repeat(40),
  size: 0,
  isNew: true,
})

describe('snapshot trees', () => {
  it('a snapshot tree lists each folder once, whatever it contains', async () => {
    async function* all() {
      for (let i = 0; i < 1000; i++) yield change(`a/b/${i}`)
    }
    const { root, files } = await collectChanges(all())
    assert.equal(files.length, 1000)
    assert.equal(root.get('a')?.folder?.get('b')?.folder?.size, 1000)
  })
  it('memory for a snapshot tree is bounded even if each file has its own folders', async () => {
    let given = 0
    async function* all() {
      // A snapshot may change 250,000 files; each of these creates two hundred names.
      for (; given < 250_000; given++) yield change(`${given}${'/a'.repeat(198)}`)
    }
    await assert.rejects(collectChanges(all()), { code: 'too_large' })
    // About 300 bytes each: more names would take gigabytes.
    assert.ok(given * 199 < 1_000_000, `${given} files with ${given * 199} names were accepted`)
  })
})
