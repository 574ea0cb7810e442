import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { isAlive, processIdentity, waitForEnd } from '../../../src/lib/process/process-identity.ts'
import { AlreadyRunning, acquireLock } from '../../../src/lib/process/process-lock.ts'
import { newFolder, runProgram } from '../standalone/helpers.ts'

const startedAt = '2020-01-01T00:00:00.000Z'

test('the second process learns who holds the lock', async () => {
  const path = join(await newFolder(), 'lock')
  const first = await acquireLock(path)
  await first.announce('http://127.0.0.1:3000')
  await assert.rejects(acquireLock(path), (error) => {
    assert.ok(error instanceof AlreadyRunning)
    assert.equal(error.holder.pid, process.pid)
    assert.equal(error.holder.url, 'http://127.0.0.1:3000')
    assert.ok(Date.parse(error.holder.startedAt) <= Date.now())
    return true
  })
  await first.release()
  const second = await acquireLock(path)
  await first.release()
  await assert.rejects(acquireLock(path), AlreadyRunning, 'a second release touched the next holder')
  await second.release()
})

test('the lock of a killed process is taken over, even after many such deaths', async (t) => {
  const folder = await newFolder()
  const path = join(folder, 'lock')
  for (const _ of [1, 2, 3]) {
    const holder = runProgram(t, '../lib/hold-lock.program.ts', [path])
    assert.deepEqual(await holder.line, { held: true })
    holder.child.kill('SIGKILL')
    await holder.ended
  }
  const lock = await acquireLock(path)
  await lock.release()
  assert.deepEqual(await readdir(folder), ['lock.mutex'])
})

test('a lock is taken over if its pid now belongs to another program', async (t) => {
  const path = join(await newFolder(), 'lock')
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore' })
  t.after(() => stranger.kill())
  await once(stranger, 'spawn')
  await writeFile(path, JSON.stringify({ pid: stranger.pid, birth: 'another boot:1', startedAt, url: null }))
  await (await acquireLock(path)).release()
})

test('a living process of 0.3.0, which has no kernel lock, keeps its folder', async () => {
  const path = join(await newFolder(), 'lock')
  await writeFile(path, JSON.stringify({ ...(await processIdentity(process.pid)), startedAt, url: null }))
  await assert.rejects(acquireLock(path), AlreadyRunning)
})

test('exactly one of many concurrent starts gets the lock of a dead process', async (t) => {
  const folder = await newFolder()
  for (let round = 0; round < 50; round++) {
    const path = join(folder, `lock-${round}`)
    if (round % 2)
      await writeFile(path, JSON.stringify({ pid: 1, birth: 'another boot:1', startedAt, url: null }))
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => acquireLock(path)))
    const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
    assert.equal(won.length, 1)
    for (const { reason } of lost) assert.ok(reason instanceof AlreadyRunning, String(reason))
    for (const { value } of won) await value.release()
  }

  const path = join(folder, 'lock')
  await writeFile(path, JSON.stringify({ pid: 1, birth: 'another boot:1', startedAt, url: null }))
  const programs = Array.from({ length: 6 }, () => runProgram(t, '../lib/hold-lock.program.ts', [path]))
  const lines = await Promise.all(programs.map((program) => program.line))
  assert.equal(lines.filter((line) => line.held).length, 1)
})

test('an identity ends with its process, even if that stays as a zombie', async (t) => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  t.after(() => child.kill())
  await once(child, 'spawn')
  const identity = await processIdentity(child.pid as number)
  assert.ok(identity)
  assert.deepEqual(await processIdentity(child.pid as number), identity)
  assert.equal(await isAlive({ ...identity, birth: 'another boot:1' }), false)
  child.kill()
  await once(child, 'exit')
  assert.equal(await isAlive(identity), false)

  // A shell that never waits for its child keeps it as a zombie. The child ends with its input.
  const parent = spawn('/bin/sh', ['-c', 'cat <&3 & echo $!; exec sleep 600 3<&-'], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  })
  t.after(() => parent.kill())
  const [, stdout, , input] = parent.stdio
  const [printed] = await once(stdout as Readable, 'data')
  const zombie = await processIdentity(Number(String(printed)))
  assert.ok(zombie)
  ;(input as Writable).end()

  assert.equal(await waitForEnd(zombie, 60_000), true)
  process.kill(zombie.pid, 0)
})
