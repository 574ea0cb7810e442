import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { memoryKills, outOfMemory } from './memory.ts'

let dir: string
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'memory-'))
})
after(() => rm(dir, { recursive: true }))

for (const [file, text] of [
  ['memory.events', 'low 0\nhigh 0\nmax 812\noom 3\noom_kill 2\noom_group_kill 1\n'],
  ['memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n'],
  ['vmstat', 'nr_free_pages 5\noom_kill 2\npgsteal_kswapd 7\n'],
] as const)
  test(`kills for memory are counted by ${file} [report: out of memory]`, async () => {
    await writeFile(join(dir, file), text)
    assert.equal(memoryKills([join(dir, 'of the other version'), join(dir, file)]), 2)
  })

test('a system that does not count kills for memory reports none [report: out of memory]', async () => {
  await writeFile(join(dir, 'old'), 'oom_kill_disable 0\nunder_oom 0\n')
  assert.equal(memoryKills([join(dir, 'none'), join(dir, 'old')]), 0)
  assert.equal(outOfMemory('it', 0, 0, null), null)
})

test('a process killed for memory is reported with its limit [report: out of memory]', () => {
  assert.equal(
    outOfMemory('the gateway', 1, 2, 2048 * 1_048_576),
    "out of memory: the kernel killed the gateway, the agent's limit is 2048 MiB",
  )
  assert.equal(
    outOfMemory('the gateway', 1, 2, null),
    'out of memory: the kernel killed the gateway, the machine has no memory left',
  )
})
