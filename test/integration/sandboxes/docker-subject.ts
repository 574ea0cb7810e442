/** Docker for the driver tests: images of the agentd stand-in, and a new instance for each test. */
import { randomBytes } from 'node:crypto'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineImageName } from '../../../src/openclaw/image.ts'
import { type DockerOptions, DockerRuntime } from '../../../src/sandboxes/docker.ts'
import { INSTANCE_LABEL } from '../../../src/sandboxes/names.ts'
import type { Owner } from '../../../src/sandboxes/owner.ts'
import { BASE_IMAGE, docker, dockerAnswers, removeLabelled } from '../../support/docker.ts'
import { type Subject, VERSIONS } from './subject.ts'

/** A separate network, so that the tests meet neither agents of a local Berth nor each other. */
export const SUBNETS = `10.2${(randomBytes(1).readUInt8() % 10) + 40}.${randomBytes(1).readUInt8()}.0/24`

/** Why the tests cannot run here; false if they can. BERTH_TEST_DOCKER=1 makes them fail instead. */
export async function whyNotDocker(): Promise<string | false> {
  if (process.env.BERTH_TEST_DOCKER === '1' || (await dockerAnswers())) return false
  return `no Docker engine answers that has the image ${BASE_IMAGE} (scripts/ci/base-image.sh)`
}

const instances: string[] = []

/** A Berth that has had these labels before, and these agents. */
export const ownerOf = (instance: string, former: string[] = [], agentIds: string[] = []): Owner => ({
  instance,
  former,
  knows: async (ids) => new Set(ids.filter((id) => agentIds.includes(id))),
})

/** Options of a driver with a new instance. */
export async function newOptions(changes: Partial<DockerOptions> = {}): Promise<DockerOptions> {
  const instance = `test-${randomBytes(4).toString('hex')}`
  instances.push(instance)
  return {
    owner: ownerOf(instance),
    subnets: SUBNETS,
    egressPort: async () => 3128,
    baseImage: await testImages(),
    enginesDir: join(tmpdir(), 'berth-no-engines'),
    ...changes,
  }
}

export async function openSubject(): Promise<Subject> {
  const [one, two] = [await newOptions(), await newOptions()]
  const all = [new DockerRuntime(one), new DockerRuntime(two), new DockerRuntime(one)] as const
  const [runtime, stranger, colleague] = all
  return {
    runtime,
    stranger,
    colleague,
    async close() {
      await Promise.all(all.map((driver) => driver.close()))
    },
  }
}

let made: Promise<string> | undefined

/** Builds the images once; resolves to the base image that they claim to have. */
export function testImages(): Promise<string> {
  made ??= buildImages(`berth-test-${randomBytes(4).toString('hex')}`)
  return made
}

/** Removes what the tests of this file have created, including the images. */
export async function cleanUp(): Promise<void> {
  for (const instance of instances) await removeLabelled(`${INSTANCE_LABEL}=${instance}`)
  const base = await made
  if (!base) return
  for (const version of VERSIONS)
    await docker.getImage(await engineImageName(version, base)).remove({ force: true })
}

async function buildImages(base: string): Promise<string> {
  const context = await mkdtemp(join(tmpdir(), 'berth-image-'))
  try {
    await mkdir(join(context, 'openclaw/node_modules/openclaw'), { recursive: true })
    await cp(join(import.meta.dirname, 'agentd'), join(context, 'agentd'), { recursive: true })
    for (const version of VERSIONS) {
      await writeFile(
        join(context, 'Dockerfile'),
        `FROM ${BASE_IMAGE}
COPY openclaw /opt/openclaw
RUN mkdir -p /opt/openclaw/node_modules/openclaw
COPY agentd /opt/agentd
LABEL berth.test=runtime berth.engine=openclaw berth.engine-version=${version}
USER node
WORKDIR /home/node
ENTRYPOINT ["/usr/bin/tini", "--", "node", "/opt/agentd/main.ts"]
`,
      )
      const stream = await docker.buildImage(
        { context, src: ['Dockerfile', 'agentd', 'openclaw'] },
        { t: await engineImageName(version, base), version: '1', networkmode: 'none', forcerm: true },
      )
      await new Promise<void>((resolve, reject) => {
        docker.modem.followProgress(stream, (error) => (error ? reject(error) : resolve()))
      })
    }
  } finally {
    await rm(context, { recursive: true })
  }
  return base
}
