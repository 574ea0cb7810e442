/** An agent whose file system refuses every write: it says so, can be reached, and comes back when there is room. */
import assert from 'node:assert/strict'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { AgentStatus, ExecResult } from '../../../agentd/protocol.ts'
import { mountSmallDisk, NO_MOUNT } from '../../support/small-disk.ts'
import { standInEngine, TestAgentd } from './agentd.ts'

const disk = await mountSmallDisk(32)

describe('an agent on a full disk with a hard limit', { skip: disk ? false : NO_MOUNT }, () => {
  if (!disk) return
  let engineDir: string
  let agentd: TestAgentd
  const inRun = (run: string, state: string) => (status: AgentStatus) =>
    status.gateway.run === run && status.gateway.state === state
  before(async () => {
    engineDir = await standInEngine()
    const home = join(disk.dir, 'home')
    await mkdir(home)
    agentd = await TestAgentd.start({ engineDir, home, hardLimit: true })
    await agentd.start({ run: 'first' })
    await agentd.until('ready', 60_000, inRun('first', 'ready'))
    await disk.fillTo(0)
  })
  after(async () => {
    await agentd?.close()
    await disk.unmount()
    await rm(engineDir, { recursive: true, force: true })
  })

  test('a gateway that dies is not started again, and the reason names the disk', async () => {
    process.kill((await agentd.status()).gateway.pid as number, 'SIGKILL')
    const { gateway, disk } = await agentd.until('failed', 60_000, inRun('first', 'failed'))
    assert.match(gateway.reason ?? '', /^disk full: the agent's files take \d+ MiB of \d+ MiB$/)
    assert.equal(disk.hardLimit, true)
  })

  test('an agentd that is started there answers, and says why the gateway does not start', async () => {
    await agentd.kill('SIGKILL')
    await agentd.boot()
    await agentd.start({ run: 'second' }, 2)
    const { gateway } = await agentd.until('failed', 60_000, inRun('second', 'failed'))
    assert.match(gateway.reason ?? '', /^disk full/)
  })

  test('the console makes room, and the gateway starts', async () => {
    const command = `rm ${join(disk.dir, 'filler')}`
    const json = { command, timeoutMs: 10_000, outputBytes: 1000 }
    const { status, body } = await agentd.call<ExecResult>('POST', '/v1/exec', { json })
    assert.deepEqual([status, body.exitCode], [200, 0], body.stderr)
    await agentd.start({ run: 'third' }, 2)
    await agentd.until('ready', 60_000, inRun('third', 'ready'))
  })
})
