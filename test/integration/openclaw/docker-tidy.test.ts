/** Unused engine images are removed on a Docker engine that two Berths share. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { engineImageName, imageNames } from '../../../src/openclaw/image.ts'
import { tidyImages } from '../../../src/openclaw/tidy.ts'
import { BASE_IMAGE, docker, dockerAnswers } from '../../support/docker.ts'
import { until } from '../../support/processes.ts'

const GRACE_MS = 3_600_000
const version = `2002.${randomInt(100)}.${randomInt(1000)}`
const old = `2003.${randomInt(100)}.${randomInt(1000)}`
/** Two Berths with different base images. */
const [ours, theirs] = [`berth-test-a${version}`, `berth-test-b${version}`]

/** The real Docker engine, restricted to the images of these versions, because others use it at the same time. */
const seen: typeof docker = Object.assign(Object.create(docker), {
  listImages: async (options: object) =>
    (await docker.listImages(options)).filter(({ RepoTags }) =>
      RepoTags?.some((name) => name.includes(`:${version}-`) || name.includes(`:${old}-`)),
    ),
})

const made: string[] = []
async function build(name: string): Promise<string> {
  const context = await mkdtemp(join(tmpdir(), 'berth-tidy-'))
  await writeFile(
    join(context, 'Dockerfile'),
    `FROM ${BASE_IMAGE}\nLABEL berth.test=tidy berth.name=${name}\n`,
  )
  const options = { t: name, version: '1' as const, networkmode: 'none', forcerm: true }
  const stream = await docker.buildImage({ context, src: ['Dockerfile'] }, options)
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(stream, (error) => (error ? reject(error) : resolve()))
  })
  await rm(context, { recursive: true })
  made.push(name)
  return name
}
const isThere = (name: string) =>
  docker
    .getImage(name)
    .inspect()
    .then(
      () => true,
      () => false,
    )

after(async () => {
  for (const name of made)
    await docker
      .getImage(name)
      .remove({ force: true })
      .catch(() => {})
})

test('an image that no Berth needs and no container uses is removed after the grace period', {
  skip: !(await dockerAnswers()),
}, async (t) => {
  const [agent = '', engine = ''] = await imageNames(version, ours)
  const needed = [await build(agent), await build(engine)]
  const others = await build(await engineImageName(version, theirs))
  const stale = await build(`berth-openclaw:${version}-0123456789ab`)
  const used = await build(`berth-openclaw:${old}-0123456789ab`)
  const container = await docker.createContainer({ Image: used, Cmd: ['true'] })
  t.after(() => container.remove({ force: true }).catch(() => {}))
  const tidy = (baseImage: string) => tidyImages(seen, { keep: [version], graceMs: GRACE_MS, baseImage })

  assert.deepEqual(await tidy(ours), [], 'all are recent')
  const built = Date.now()
  await until('a moment has passed', () => Date.now() > built)
  // The other Berth needs its image, and marks it.
  await tidy(theirs)
  // The others are old enough, and that one is not yet.
  t.mock.timers.enable({ apis: ['Date'], now: built + GRACE_MS })
  assert.deepEqual(await tidy(ours), [stale])
  for (const name of [...needed, others, used]) assert.ok(await isThere(name), name)

  await container.remove()
  assert.deepEqual(await tidy(ours), [used])
  // The other Berth is gone for good.
  t.mock.timers.setTime(built + 2 * GRACE_MS)
  assert.deepEqual(await tidy(ours), [others])
  for (const name of needed) assert.ok(await isThere(name), name)
})
