/**
 * The home of an agent in Docker, as a tar. It goes by a container of its own that is never started, made of an empty
 * image: so neither the agent's container nor an image of its engine has to be there.
 */
import { Readable } from 'node:stream'
import { type DockerEngine, ignoring, SLOW_MS } from './engine.ts'
import { nameOf } from './names.ts'
import { HOME } from './spec.ts'

const EMPTY_IMAGE = 'berth-empty'
/** A tar without entries: two blocks of zeros. */
const EMPTY_TAR = Buffer.alloc(1024)
/** The bound on a copy: the engine's own one holds while no byte passes. */
const COPY_MS = 24 * 3_600_000

/** Reads the volume as it is, also while the agent writes to it. */
export async function* readHome(
  engine: DockerEngine,
  agentId: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const id = await makeHelper(engine, agentId, signal)
  try {
    const content = await engine.call('read home', { ms: SLOW_MS, signal }, (docker) =>
      docker.getContainer(id).getArchive({ path: `${HOME}/.` }),
    )
    yield* content as AsyncIterable<Uint8Array>
  } finally {
    await removeHelper(engine, agentId)
  }
}

/** Unpacks a tar into the agent's volume, which the caller has made anew. */
export async function writeHome(
  engine: DockerEngine,
  agentId: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const id = await makeHelper(engine, agentId, signal)
  try {
    await engine.call('write home', { ms: COPY_MS, signal }, (docker) =>
      docker.getContainer(id).putArchive(Readable.from(content, { objectMode: false }), { path: HOME }),
    )
  } finally {
    await removeHelper(engine, agentId)
  }
}

const helperOf = (agentId: string) => `${nameOf(agentId)}-home`

/** Without a label: it is no agent's container, and whoever finds one of these may remove it. */
async function makeHelper(
  engine: DockerEngine,
  agentId: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  await removeHelper(engine, agentId)
  return engine.call('make helper', { ms: SLOW_MS, signal }, async (docker) => {
    const image = await docker.getImage(EMPTY_IMAGE).inspect().catch(ignoring(404))
    if (!image) {
      const imported = await docker.importImage(Readable.from([EMPTY_TAR]) as never, {
        repo: EMPTY_IMAGE,
        tag: 'latest',
      })
      for await (const _ of imported);
    }
    const { id } = await docker.createContainer({
      name: helperOf(agentId),
      Image: EMPTY_IMAGE,
      Cmd: ['none'],
      HostConfig: {
        NetworkMode: 'none',
        Mounts: [{ Type: 'volume', Source: nameOf(agentId), Target: HOME }],
      },
    })
    return id
  })
}

async function removeHelper(engine: DockerEngine, agentId: string): Promise<void> {
  await engine.call('remove helper', { ms: SLOW_MS }, (docker) =>
    docker.getContainer(helperOf(agentId)).remove({ force: true }).catch(ignoring(404)),
  )
}
