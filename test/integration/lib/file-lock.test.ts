/** The lock of processes that share a folder and cannot see each other, like workers in two containers. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chown, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tryLock, withLock } from '../../../src/lib/process/file-lock.ts'
import { inPidNamespace, NO_PID_NAMESPACES } from '../../support/pid-namespace.ts'
import { newFolder } from '../standalone/helpers.ts'

const PROGRAM = fileURLToPath(new URL('./hold-file-lock.program.ts', import.meta.url))

/** Another process that takes the lock, in a new pid namespace unless told otherwise. */
function contender(t: TestContext, path: string, command = inPidNamespace(PROGRAM, path)) {
  const child = spawn(...command, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    child,
    /** The next message of the process; undefined when it has ended. */
    async next(): Promise<unknown> {
      const { value } = await lines.next()
      return value && JSON.parse(value)
    },
  }
}

test('a process in another pid namespace gets the lock when its holder is killed', {
  skip: NO_PID_NAMESPACES,
}, async (t) => {
  const path = join(await newFolder(), 'lock')
  let holder = contender(t, path)
  assert.deepEqual(await holder.next(), { event: 'holds', pid: 1 })
  // Each time with the same pid as its predecessor, as in a restarted container.
  for (const _ of [1, 2]) {
    const waiting = contender(t, path)
    assert.deepEqual(await waiting.next(), { event: 'waits', pid: 1 })
    assert.equal(tryLock(path), null)
    holder.child.kill('SIGKILL')
    assert.deepEqual(await waiting.next(), { event: 'holds', pid: 1 })
    holder = waiting
  }
  assert.equal(tryLock(path), null)
  holder.child.stdin.end()
  assert.equal(await holder.next(), undefined)
  await withLock(path, {}, async () => {})
})

test('one holder at a time has the lock within a process, and failed attempts keep it', async (t) => {
  const path = join(await newFolder(), 'lock')
  const release = tryLock(path)
  assert.ok(release)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.equal(tryLock(path), null)
  // When any descriptor of a file is closed, the kernel releases all locks that the process has on it.
  const other = contender(t, path, [process.execPath, [PROGRAM, path]])
  assert.deepEqual(await other.next(), { event: 'waits', pid: other.child.pid })
  release()
  assert.deepEqual(await other.next(), { event: 'holds', pid: other.child.pid })
  other.child.stdin.end()
  assert.equal(await other.next(), undefined)
  const order: string[] = []
  const work = (name: string) => async () => {
    order.push(`${name} begins`)
    await stat(path)
    order.push(`${name} ends`)
  }
  await Promise.all([withLock(path, {}, work('a')), withLock(path, {}, work('b'))])
  assert.deepEqual(order, ['a begins', 'a ends', 'b begins', 'b ends'])
})

test('root creates a lock file that the owner of the folder can lock', {
  skip: process.getuid?.() === 0 ? false : 'this is not root',
}, async () => {
  const folder = await newFolder()
  await chown(folder, 1000, 1000)
  const path = join(folder, 'lock')
  tryLock(path)?.()
  assert.equal((await stat(path)).uid, 1000)
})

test('an abort ends the wait for a lock, and the error for a missing folder names it', async () => {
  const folder = await newFolder()
  const path = join(folder, 'lock')
  const release = tryLock(path)
  const stop = new AbortController()
  const onLine = () => stop.abort(new Error('enough'))
  await assert.rejects(withLock(path, { onLine, signal: stop.signal }, async () => {}))
  release?.()
  assert.throws(() => tryLock(join(folder, 'nowhere/lock')), /ENOENT.*nowhere/)
})
