/** The report of the space that a Berth uses in Docker. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { dockerUsage, formatUsage } from '../../../src/sandboxes/docker/usage.ts'
import { DockerRuntime } from '../../../src/sandboxes/docker.ts'
import { until } from '../../support/processes.ts'
import { cleanUp, newOptions, whyNotDocker } from './docker-subject.ts'
import { newAgent, outputIn, runIn, specOf, VERSIONS } from './subject.ts'

describe('Docker usage', { skip: await whyNotDocker() }, () => {
  after(cleanUp)

  test('Docker usage is counted and measured without objects of another Berth', async () => {
    const [ours, theirs] = [await newOptions(), await newOptions()]
    const stranger = new DockerRuntime(theirs)
    for (let i = 0; i < 2; i++) await stranger.create(specOf(newAgent()))
    const runtime = new DockerRuntime(ours)
    const [agentId, withoutContainer] = [newAgent(), newAgent()]
    await runtime.ensureVolume(withoutContainer)
    await runtime.create(specOf(agentId))
    const { address } = await runtime.start(agentId)
    await until('it answers', async () => (await runIn(address, 'true')).code === 0)
    await outputIn(address, 'head -c 5000000 /dev/urandom > $HOME/file')

    const usage = await dockerUsage(undefined, ours.owner)
    assert.deepEqual([usage.containers.count, usage.volumes.count, usage.networks], [1, 2, 1])
    assert.ok(usage.volumes.bytes > 4_990_000 && usage.volumes.bytes < 6_000_000, `${usage.volumes.bytes}`)
    assert.ok(usage.images.count >= VERSIONS.length)
    // Including the base image, which has several hundred megabytes.
    assert.ok(usage.images.bytes > 200_000_000, `${usage.images.bytes}`)
    assert.match(
      formatUsage(usage),
      /^1 containers \(0 MB\), 2 volumes \(5 MB\), 1 networks, \d+ engine images \(\d+ MB\); whole build cache \d+ MB$/,
    )
  })
})
