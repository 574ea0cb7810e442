import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TreeChange } from '../../../agentd/repository/protocol.ts'
import { Changes } from './changes.ts'

const MOST = { files: 5, bytes: 10 }
const BLOB = '1'.repeat(40)
const file = (
  path: string,
  more: Partial<{ mode: '100644' | '100755'; size: number; isNew: boolean }> = {},
) => ({ path, mode: '100644', blob: BLOB, size: 1, isNew: true, ...more }) as const
const gone = (path: string) => ({ path, removed: true }) as const

async function count(changes: Changes, all: Iterable<TreeChange>): Promise<Changes> {
  for await (const _ of changes.count(each(all)));
  return changes
}
async function* each(all: Iterable<TreeChange>) {
  yield* all
}

describe('changes', () => {
  it('changes are summarised for people', async () => {
    const all = [file('a'), file('b', { isNew: false }), gone('c'), gone('d')]
    assert.equal((await count(new Changes([], MOST), all)).summary, '1 added, 1 changed, 2 removed')
    assert.equal((await count(new Changes([], MOST), [gone('c')])).summary, '1 removed')
    assert.equal((await count(new Changes([], MOST), [])).summary, 'nothing changed')
  })
  it('changes report which files are executable afterwards', async () => {
    const all = [
      file('b', { mode: '100755' }),
      file('stays-not'),
      gone('goes'),
      file('x', { mode: '100755' }),
    ]
    const changes = await count(new Changes(['goes', 'stays', 'stays-not', 'x'], MOST), all)
    assert.deepEqual(changes.executables, ['b', 'stays', 'x'])
  })
  it('changes know the sizes of new content', async () => {
    const changes = await count(new Changes([], MOST), [file('a', { size: 7 })])
    assert.deepEqual([changes.sizeOf(BLOB), changes.sizeOf('2'.repeat(40))], [7, undefined])
  })
  it('changes are bounded', async () => {
    function* many() {
      for (let i = 0; ; i++) yield gone(`${i}`)
    }
    await assert.rejects(count(new Changes([], MOST), many()), /more than 5 files/)
    function* long() {
      for (let i = 0; ; i++) yield gone(`${i}/${'a'.repeat(1_000_000)}`)
    }
    await assert.rejects(count(new Changes([], { files: 1000, bytes: 10 }), long()), /paths .* too long/)
    await assert.rejects(count(new Changes([], MOST), [file('a', { size: 11 })]), /more than 10 bytes/)
    await assert.rejects(count(new Changes([], MOST), [file('a'), gone('a')]), /a path twice/)
  })
})
