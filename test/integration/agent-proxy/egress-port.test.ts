import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { listenOnKeptPort } from '../../../src/agent-proxy/egress-port.ts'
import { ConfigError } from '../../../src/errors.ts'
import { useFolder } from '../../support/folder.ts'

async function newDir(t: TestContext): Promise<string> {
  const dir = await useFolder('berth-port-', t)
  return dir
}

/** Listens on any port except those in `taken`, and records the attempts. */
function machine(...taken: number[]) {
  const tried: number[] = []
  const listen = async (port: number) => {
    tried.push(port)
    if (taken.includes(port)) throw new ConfigError(`BERTH_EGRESS_PORT: ${port} is in use on 127.0.0.1`)
    return port
  }
  return { tried, listen }
}

test('the proxy keeps the usual egress port if it is free', async (t) => {
  const dir = await newDir(t)
  assert.equal(await listenOnKeptPort(dir, machine().listen), 3128)
  assert.equal(await readFile(join(dir, 'egress.port'), 'utf8'), '3128\n')
})

test('the proxy keeps a replacement egress port even if the usual one becomes free', async (t) => {
  const dir = await newDir(t)
  const port = await listenOnKeptPort(dir, machine(3128).listen)
  assert.ok(port >= 20_000 && port < 30_000)
  const later = machine()
  assert.equal(await listenOnKeptPort(dir, later.listen), port)
  assert.deepEqual(later.tried, [port])
  assert.deepEqual(await readdir(dir), ['egress.port', 'egress.port.mutex'])
})

test('the proxy reports an error if the egress port it kept is in use', async (t) => {
  const dir = await newDir(t)
  await writeFile(join(dir, 'egress.port'), '23456\n')
  await assert.rejects(
    listenOnKeptPort(dir, machine(23456).listen),
    /23456 is in use on 127\.0\.0\.1; agents hold this port, so .*egress\.port keeps it/,
  )
})

test('if two proxies choose a port at once, one gives up and the port of the other is kept', async (t) => {
  const dir = await newDir(t)
  // Neither listens before the other has found that no port is kept.
  let listening = 0
  const both = Promise.withResolvers<void>()
  const together = (listen: (port: number) => Promise<number>) => async (port: number) => {
    if (++listening === 2) both.resolve()
    await both.promise
    return listen(port)
  }
  const outcomes = await Promise.allSettled([
    listenOnKeptPort(dir, together(machine().listen)),
    listenOnKeptPort(dir, together(machine(3128).listen)),
  ])
  const kept = Number(await readFile(join(dir, 'egress.port'), 'utf8'))
  const results = outcomes.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason)))
  assert.equal(results.filter((one) => one === kept).length, 1, results.join('\n'))
  assert.equal(results.filter((one) => /another process has just kept/.test(String(one))).length, 1)
})

test('a proxy that cannot save its egress port reports an error', async () => {
  await assert.rejects(
    listenOnKeptPort('/proc/nowhere', machine().listen),
    /BERTH_EGRESS_PORT: not set, and \/proc\/nowhere\/egress\.port cannot be written/,
  )
})
