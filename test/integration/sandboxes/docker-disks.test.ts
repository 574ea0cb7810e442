/** Hard limits of agents' disks: the disk helper on a real btrfs, and containers that reach their limit. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { checkAgentDisks } from '../../../src/health/checks.ts'
import { DockerRuntime } from '../../../src/sandboxes/docker.ts'
import { nameOf } from '../../../src/sandboxes/names.ts'
import { TestDisks, whyNoDisks } from '../../support/disk-helper.ts'
import { docker } from '../../support/docker.ts'
import { until } from '../../support/processes.ts'
import { cleanUp, newOptions, whyNotDocker } from './docker-subject.ts'
import { failsWith, newAgent, outputIn, runIn, specOf } from './subject.ts'

const MIB = 1_048_576
const LIMIT = specOf('x').agentd.diskBytes

describe('disks of agents in Docker, with a disk helper', {
  skip: (await whyNotDocker()) || (await whyNoDisks()),
}, () => {
  let disks: TestDisks
  let runtime: DockerRuntime
  let options: Awaited<ReturnType<typeof newOptions>>
  const start = async (agentId: string, diskBytes = LIMIT) => {
    const { agentd, ...spec } = specOf(agentId)
    await runtime.create({ ...spec, agentd: { ...agentd, diskBytes } })
    const { address } = await runtime.start(agentId)
    await until('agentd answers', async () => (await runIn(address, 'true')).code === 0)
    return address
  }
  const all = async () => (await disks.helper.read(undefined)).disks
  const diskOf = async (agentId: string) => (await all()).find((disk) => disk.agentId === agentId)
  const ask = (method: string, path: string, body?: string) =>
    new Promise<{ status: number | undefined; body: unknown }>((resolve, reject) => {
      const sent = request({ socketPath: disks.socket, agent: false, method, path }, async (response) => {
        const text = (await response.toArray()).join('')
        resolve({ status: response.statusCode, body: text ? JSON.parse(text) : undefined })
      })
      sent.on('error', reject)
      sent.end(body)
    })

  before(async () => {
    disks = await TestDisks.start()
    options = await newOptions({ disksSocket: disks.socket })
    runtime = new DockerRuntime(options)
  })
  after(async () => {
    await runtime?.close()
    await cleanUp()
    await disks?.close()
  })

  test('a write beyond a disk’s limit fails, and the agent frees space without affecting others', async () => {
    const [agentId, neighbour] = [newAgent(), newAgent()]
    const address = await start(agentId)
    const beside = await start(neighbour)
    const config = JSON.parse(await outputIn(address, 'echo "$AGENTD_CONFIG"'))
    assert.equal(config.hardLimit, true)
    const full = await runIn(
      address,
      'for i in 1 2 3; do dd if=/dev/urandom of=$HOME/big$i bs=1M count=40; done 2>&1',
    )
    assert.match(full.output, /Disk quota exceeded/)
    const small = await runIn(address, 'i=0; while echo hi >~/small$i; do i=$((i+1)); done 2>&1')
    assert.match(small.output, /Disk quota exceeded/)
    const used = Number((await diskOf(agentId))?.usedBytes)
    assert.ok(used > LIMIT - MIB && used <= LIMIT, `${used} of ${LIMIT}`)
    assert.equal((await runIn(address, 'echo ok >/tmp/ok && ls ~ >/dev/null')).code, 0)
    await outputIn(beside, 'dd if=/dev/urandom of=$HOME/mine bs=1M count=40 2>&1')
    await outputIn(address, 'find ~ -name "small*" -delete && rm ~/big*')
    await outputIn(address, 'dd if=/dev/urandom of=$HOME/again bs=1M count=40 2>&1')
  })

  test('an agent’s subvolumes and snapshots count against its disk and are removed with it', async () => {
    const agentId = newAgent()
    const address = await start(agentId)
    const ioctl = (request: string, at: string, args: string) =>
      outputIn(
        address,
        `perl -e 'open(my $d, "<", "$ENV{HOME}/${at}") or die; open(my $s, "<", $ENV{HOME}); ioctl($d, ${request}, ${args}) or die $!'`,
      )
    const subvolume = (at: string, name: string) =>
      ioctl('0x5000940e', at, `my $a = pack("qa4088", 0, "${name}")`)
    const forged = `x\nID 5 gen 1 top level 5 path berth-removed.${agentId}`
    await outputIn(address, 'mkdir -m 1777 ~/at')
    await subvolume('at', 'inner')
    await subvolume('at/inner', 'innermost')
    // A snapshot of the home within itself, whose name looks like a line of btrfs output, and a read-only subvolume.
    await ioctl('0x50009401', 'at', `my $a = pack("qa4088", fileno($s), "${forged}")`)
    await ioctl('0x4008941a', 'at/inner', 'my $a = pack("Q", 2)')
    const full = await runIn(
      address,
      'dd if=/dev/urandom of=$HOME/at/inner/innermost/big bs=1M count=80 2>&1',
    )
    assert.match(full.output, /Disk quota exceeded/)
    await runtime.remove(agentId, { volume: true })
    assert.equal(await diskOf(agentId), undefined)
    await until('all of it is removed', async () => {
      await all()
      return (await disks.leftovers()) === ''
    })
  })

  test('a disk’s limit is set again at each start and applies to existing content', async () => {
    const agentId = newAgent()
    const address = await start(agentId)
    await outputIn(address, 'dd if=/dev/urandom of=$HOME/big bs=1M count=40 2>&1')
    await runtime.stop(agentId, { graceMs: 0 })
    const lower = await start(agentId, 32 * MIB)
    assert.match((await runIn(lower, 'dd if=/dev/urandom of=$HOME/more bs=1M count=1 2>&1')).output, /quota/)
    await runtime.ensureVolume(agentId, { diskBytes: 80 * MIB })
    await outputIn(lower, 'dd if=/dev/urandom of=$HOME/more bs=1M count=20 2>&1')
    assert.equal((await diskOf(agentId))?.limitBytes, 80 * MIB)
  })

  test('a home is read and written as a tar, and a written home has its limit at the next start', async () => {
    const [agentId, other] = [newAgent(), newAgent()]
    const address = await start(agentId)
    await outputIn(address, 'echo content >~/mine')
    await runtime.writeHome(other, runtime.readHome(agentId))
    const copied = await start(other)
    assert.equal(await outputIn(copied, 'cat ~/mine; stat -c %u ~/mine'), 'content\n1000')
    assert.match((await runIn(copied, 'dd if=/dev/urandom of=$HOME/big bs=1M count=80 2>&1')).output, /quota/)
  })

  test('a volume from before the disk helper stays unchanged with its content', async () => {
    const agentId = newAgent()
    const without = new DockerRuntime({ ...options, disksSocket: undefined })
    await without.create(specOf(agentId))
    const { address } = await without.start(agentId)
    await until('it answers', async () => (await runIn(address, 'echo kept >~/kept')).code === 0)
    await without.stop(agentId, { graceMs: 0 })
    const later = await start(agentId)
    assert.equal(await outputIn(later, 'cat ~/kept'), 'kept')
    assert.equal(JSON.parse(await outputIn(later, 'echo "$AGENTD_CONFIG"')).hardLimit, undefined)
    assert.equal(await diskOf(agentId), undefined)
    await runtime.remove(agentId, { volume: true })
    assert.equal(
      await docker
        .getVolume(nameOf(agentId))
        .inspect()
        .catch(() => null),
      null,
    )
  })

  test('a killed disk helper finds all disks again, and running agents continue', async () => {
    const agentId = newAgent()
    const address = await start(agentId)
    await disks.kill()
    await outputIn(address, 'echo kept >~/kept')
    await assert.rejects(runtime.ensureVolume(agentId), failsWith('unreachable'))
    const finding = await checkAgentDisks(disks.socket, undefined)
    assert.match(finding.detail ?? '', /BERTH_DISKS_SOCKET/)
    await assert.rejects(runtime.remove(newAgent(), { volume: true }), failsWith('unreachable'))
    assert.ok((await runtime.list()).sandboxes.some((sandbox) => sandbox.agentId === agentId))
    await disks.boot()
    assert.equal((await disks.loops()).length, 1)
    await runtime.stop(agentId, { graceMs: 0 })
    assert.equal(await outputIn(await start(agentId), 'cat ~/kept'), 'kept')
  })

  test('a disk without a volume is listed and can be removed', async () => {
    const agentId = newAgent()
    await disks.helper.ensure(agentId, LIMIT, undefined)
    assert.ok((await runtime.list()).volumes.includes(agentId))
    for (let i = 0; i < 2; i++) await runtime.remove(agentId, { volume: true })
    assert.ok(!(await runtime.list()).volumes.includes(agentId))
  })

  test('the disk helper accepts only an agent’s id and a size', async () => {
    const size = JSON.stringify({ bytes: LIMIT })
    const paths = [
      '/disks/',
      '/disks/..',
      '/disks/xabc1234/..',
      '/disks/%2e%2e',
      '/disks/XABC1234',
      '/disks/xabc12345',
    ]
    for (const path of paths) assert.equal((await ask('PUT', path, size)).status, 400, path)
    for (const path of paths.slice(1)) assert.equal((await ask('DELETE', path)).status, 400, path)
    for (const bytes of ['1', '-1', '1.5', '"1G"', '1e300', '[]', 'none'])
      assert.equal((await ask('PUT', `/disks/${newAgent()}`, `{"bytes": ${bytes}}`)).status, 400, bytes)
    assert.equal((await ask('PUT', `/disks/${newAgent()}`, ' '.repeat(2000))).status, 400)
    assert.equal((await ask('POST', `/disks/${newAgent()}`, size)).status, 405)
  })

  test('without room for another disk, a new agent is refused and existing agents continue', async () => {
    const [agentId, another] = [newAgent(), newAgent()]
    const address = await start(agentId, 600 * MIB)
    await runIn(
      address,
      'ulimit -f unlimited; for i in $(seq 20); do dd if=/dev/zero of=$HOME/big$i bs=1M count=50; done 2>&1; sync -f ~',
    )
    await assert.rejects(runtime.ensureVolume(another), failsWith('disk_full'))
    assert.equal((await checkAgentDisks(disks.socket, 16 * MIB)).status, 'down')
    await runtime.ensureVolume(agentId)
    await outputIn(address, 'rm ~/big*')
    await until('there is room again', () =>
      runtime.ensureVolume(another).then(
        () => true,
        () => false,
      ),
    )
  })
})
