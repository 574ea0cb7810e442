/**
 * The home of an agent in Docker, as a tar. It goes by a container of its own that is never started, made of an image
 * that has an empty home and nothing else: so neither the agent's container nor an image of its engine has to be there.
 */
import { Readable } from 'node:stream'
import { HOME, UID } from '../in-image.ts'
import { nameOf } from '../names.ts'
import { type DockerEngine, ignoring, SLOW_MS } from './engine.ts'

const EMPTY_IMAGE = 'berth-empty-home'
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

/**
 * A tar with the agent's home as its one entry. Docker gives a new volume the owner that its folder has in the image, and
 * leaves that as it is when it unpacks a tar.
 */
function emptyHome(): Buffer {
  const [header, end] = [Buffer.alloc(512), Buffer.alloc(1024)]
  const owner = UID.toString(8).padStart(7, '0')
  const fields: [offset: number, text: string][] = [
    [0, `${HOME.slice(1)}/`],
    [100, '0000755'],
    [108, owner],
    [116, owner],
    [124, '00000000000'],
    [136, '00000000000'],
    // Blanks stand for the checksum while it is made.
    [148, ' '.repeat(8)],
    [156, '5'],
    [257, 'ustar\x0000'],
  ]
  for (const [offset, text] of fields) header.write(text, offset, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1')
  return Buffer.concat([header, end])
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
      const imported = await docker.importImage(Readable.from([emptyHome()]) as never, {
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

/** Removes the container that a backup has made, or left behind where it was killed: it would keep the volume. */
export async function removeHelper(engine: DockerEngine, agentId: string): Promise<void> {
  await engine.call('remove helper', { ms: SLOW_MS }, (docker) =>
    docker.getContainer(helperOf(agentId)).remove({ force: true }).catch(ignoring(404)),
  )
}
