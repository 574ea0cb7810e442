/**
 * Reads and writes an agent's home in Docker as a tar. Uses a helper container that is never started, from an image
 * that contains only an empty home, so that neither the agent's container nor an engine image has to exist.
 */
import { Readable } from 'node:stream'
import { ignoreStatus } from '../../openclaw/docker-build.ts'
import { HOME, UID } from '../in-image.ts'
import { nameOf } from '../names.ts'
import { type DockerEngine, SLOW_MS } from './engine.ts'

const EMPTY_IMAGE = 'berth-empty-home'
/** The time limit of a copy. The engine's own limit applies only while no byte passes. */
const COPY_MS = 24 * 3_600_000

/** Reads the volume, even while the agent writes to it. */
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

/** Unpacks a tar into the agent's volume, which the caller has just created. */
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
 * A tar whose only entry is the agent's home. Docker gives a new volume the owner of the image's folder, and keeps that
 * owner when it unpacks a tar.
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
    // Blanks stand in for the checksum while it is computed.
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

/** Unlabelled, because it is not an agent's container, and any process that finds a helper may remove it. */
async function makeHelper(
  engine: DockerEngine,
  agentId: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  await removeHelper(engine, agentId)
  return engine.call('make helper', { ms: SLOW_MS, signal }, async (docker) => {
    const image = await docker.getImage(EMPTY_IMAGE).inspect().catch(ignoreStatus(404))
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

/** Removes the container that a backup created, or left behind when it was killed. It would keep the volume in use. */
export async function removeHelper(engine: DockerEngine, agentId: string): Promise<void> {
  await engine.call('remove helper', { ms: SLOW_MS }, (docker) =>
    docker.getContainer(helperOf(agentId)).remove({ force: true }).catch(ignoreStatus(404)),
  )
}
