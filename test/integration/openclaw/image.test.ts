import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  buildEngineImage,
  canBuild,
  engineImageName,
  listEngineImages,
  removeEngineImages,
} from '../../../src/openclaw/image.ts'
import { tidyInstalled } from '../../../src/openclaw/tidy.ts'
import { BASE_IMAGE, docker, dockerAnswers } from '../../support/docker.ts'

const skip = (await dockerAnswers())
  ? false
  : 'no Docker engine with a base image: scripts/ci/{docker,base-image}.sh'
/** A version from a year without an engine release, different from the version of a concurrent run. */
const version = `2001.${randomInt(100)}.${randomInt(1000)}`

let enginesDir: string
const build = (more: { signal?: AbortSignal; onLine?: (line: string) => void } = {}) =>
  buildEngineImage(docker, { version, baseImage: BASE_IMAGE, enginesDir, ...more })
const images = async () =>
  (await listEngineImages(docker, BASE_IMAGE)).filter((image) => image.version === version)

before(async () => {
  // A stand-in that is already installed, readable only by its owner, as with a strict umask.
  enginesDir = await mkdtemp(join(tmpdir(), 'berth-engines-'))
  const engine = join(enginesDir, version, 'node_modules/openclaw')
  await mkdir(engine, { recursive: true })
  await writeFile(join(engine, 'openclaw.mjs'), '#!/usr/bin/env node\nconsole.log("engine")\n', {
    mode: 0o755,
  })
  // Compiled for agents that run as processes of this machine.
  await mkdir(join(enginesDir, version, 'compile-cache'))
  await writeFile(join(enginesDir, version, 'compile-cache/code'), '')
})

after(async () => {
  if (!skip) await removeEngineImages(docker, version)
  await rm(enginesDir, { recursive: true, force: true })
})

test('an abort ends a build, and leaves no image', { skip }, async () => {
  const stop = new AbortController()
  await assert.rejects(
    build({ signal: stop.signal, onLine: () => stop.abort(new Error('enough')) }),
    /enough/,
  )
  assert.deepEqual(await images(), [])
})

test('concurrent builds of one version give one image, with the engine and agentd in it', {
  skip,
}, async () => {
  const lines: string[] = []
  let tidied: Promise<string[]> | undefined
  const onLine = (line: string) => {
    lines.push(line)
    // Another worker, for which the version was unused a moment ago, may do this.
    if (line.startsWith('Building')) tidied ??= tidyInstalled(enginesDir, { keep: [], graceMs: 0 })
  }
  const [name, again] = await Promise.all([build({ onLine }), build({ onLine })])
  assert.equal(name, await engineImageName(version, BASE_IMAGE))
  assert.equal(again, name)
  assert.deepEqual(await tidied, [], 'the folder that an image is built from stays')
  assert.ok(lines.some((line) => line.includes('COPY agentd')))
  const [image, ...more] = await images()
  assert.deepEqual([image?.name, image?.current, more.length], [name, true, 0])

  const { Config } = await docker.getImage(name).inspect()
  assert.equal(Config.User, 'node')
  assert.deepEqual(
    [Config.Entrypoint?.[0], Config.Entrypoint?.at(-1)],
    ['/usr/bin/tini', '/opt/agentd/main.ts'],
  )
  assert.equal(Config.Labels['berth.engine-version'], version)
})

test('the user that runs the image can read its files', { skip }, async () => {
  const check =
    'openclaw && [ -r /opt/agentd/main.ts ] && ! ls /opt/agentd/*.test.ts 2>/dev/null && ' +
    '[ ! -e /opt/openclaw/compile-cache ] && id -u && git --version'
  const chunks: Buffer[] = []
  const container = await docker.createContainer({
    Image: await build(),
    Entrypoint: ['sh', '-c', check],
    HostConfig: { NetworkMode: 'none' },
    Labels: { 'berth.test': '' },
  })
  try {
    await container.start()
    const { StatusCode } = await container.wait()
    chunks.push(await container.logs({ stdout: true, stderr: true }))
    const output = Buffer.concat(chunks).toString()
    assert.equal(StatusCode, 0, output)
    assert.match(output, /engine[\s\S]*1000[\s\S]*git version/)
    // Docker keeps an image while a container uses it.
    await removeEngineImages(docker, version)
    assert.equal((await images()).length, 1)
  } finally {
    await container.remove({ force: true })
  }
  await removeEngineImages(docker, version)
  assert.deepEqual(await images(), [])
})

test('an engine that needs another Node than its base has is rejected until the base has it', {
  skip,
}, async (t) => {
  const unfit = `2002.${randomInt(100)}.${randomInt(1000)}`
  const engine = join(enginesDir, unfit, 'node_modules/openclaw')
  const needs = (node: string) =>
    writeFile(join(engine, 'package.json'), JSON.stringify({ engines: { node } }))
  await mkdir(engine, { recursive: true })
  await needs('>=99.1.0 <100 || >=101.0.0')
  // Its installation ends with the first launch, for which Berth has another Node as well.
  const pending = '.openclaw-lifecycle-pending'
  await writeFile(join(engine, pending), '')
  await writeFile(
    join(engine, 'openclaw.mjs'),
    `import { rmSync } from 'node:fs'\nrmSync(new URL('${pending}', import.meta.url))\n`,
  )
  t.after(() => removeEngineImages(docker, unfit))
  const building = () => buildEngineImage(docker, { version: unfit, baseImage: BASE_IMAGE, enginesDir })
  const obstacles = async () =>
    (await listEngineImages(docker, BASE_IMAGE))
      .filter((image) => image.version === unfit)
      .map(({ obstacle }) => obstacle)

  const message = new RegExp(
    `^OpenClaw ${unfit} needs Node >=99\\.1\\.0 <100 \\|\\| >=101\\.0\\.0, and would run on Node \\d+\\.\\d+\\.\\d+$`,
  )
  await assert.rejects(building(), { code: 'no_image', message })
  const [obstacle, ...more] = await obstacles()
  assert.match(obstacle ?? '', message)
  assert.equal(more.length, 0)
  assert.ok(existsSync(join(engine, pending)))
  const container = await docker.createContainer({ Image: await engineImageName(unfit, BASE_IMAGE) })
  await assert.rejects(
    container.infoArchive({ path: `/opt/openclaw/node_modules/openclaw/${pending}` }),
    { statusCode: 404 },
    'the Node of the image has launched it',
  )
  await container.remove()

  await needs('>=20')
  await building()
  assert.deepEqual(await obstacles(), [null])
  assert.ok(!existsSync(join(engine, pending)))
})

test('a missing base is reported before anything is downloaded', { skip }, async () => {
  const baseImage = 'localhost:9/berth-nowhere:1'
  assert.equal(await canBuild(docker, BASE_IMAGE), true)
  assert.equal(await canBuild(docker, baseImage), false)
  const building = buildEngineImage(docker, { version: '2001.1.1', baseImage, enginesDir })
  await assert.rejects(building, { code: 'no_image', message: /BERTH_BASE_IMAGE/ })
})
