import assert from 'node:assert/strict'
import { appendFile, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { useFolder } from '../../../test/support/folder.ts'
import { createLogger } from '../../log.ts'
import { Journal } from './journal.ts'

const log = createLogger('test', 'silent')
const lease = (id: string, usd: number, seq = 1) => ({ id, key: 'k', seq, usd, tokens: 2 * usd })

test('the next process reads the amounts that a killed one had at risk', async (t) => {
  const path = join(await useFolder('berth-journal-', t), 'new', 'models.jsonl')
  const first = new Journal(path, log)
  assert.deepEqual(first.leases, [])
  for (const one of [lease('a', 1), lease('b', 2), lease('a', 3, 2), lease('b', 0)]) first.note(one)
  // A kill may cut a line off.
  await appendFile(path, '{"id":"c","usd"')
  const second = new Journal(path, log)
  assert.deepEqual(second.leases, [lease('a', 3, 2)])
  second.note(lease('a', 0))
  assert.deepEqual(new Journal(path, log).leases, [])
})

test('a journal does not grow without end', async (t) => {
  const path = join(await useFolder('berth-journal-', t), 'models.jsonl')
  const journal = new Journal(path, log)
  for (let usd = 1; usd <= 30_000; usd++) journal.note(lease('a', usd))
  assert.ok((await stat(path)).size < 1_100_000)
  assert.deepEqual(new Journal(path, log).leases, [lease('a', 30_000)])
  assert.equal((await readFile(path, 'utf8')).split('\n').length, 2)
})

test('without a folder to write to, models still work', () => {
  const journal = new Journal('/dev/null/models.jsonl', log)
  journal.note(lease('a', 1))
  assert.deepEqual(journal.leases, [lease('a', 1)])
})
