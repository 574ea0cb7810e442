/** Images in archives, as `docker save` writes them. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'

/**
 * Writes an archive of an image.
 * @param tags all its names.
 * @param layers tars of file systems.
 * @param config what the image sets for its containers.
 */
export async function writeImageArchive(
  path: string,
  tags: string[],
  layers: string[],
  config: object,
): Promise<void> {
  const digests = await Promise.all(layers.map(digestOf))
  const names = digests.map((digest) => `${digest}/layer.tar`)
  const image = {
    os: 'linux',
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    config,
    rootfs: { type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) },
  }
  const archive = pack()
  const written = pipeline(Readable.from(archive as AsyncIterable<Buffer>), createWriteStream(path))
  archive.entry({ name: 'config.json' }, JSON.stringify(image))
  const manifest = [{ Config: 'config.json', RepoTags: tags, Layers: names }]
  archive.entry({ name: 'manifest.json' }, JSON.stringify(manifest))
  for (const [index, layer] of layers.entries()) {
    const entry = archive.entry({ name: names[index] ?? '', size: (await stat(layer)).size })
    for await (const chunk of createReadStream(layer)) if (!entry.write(chunk)) await once(entry, 'drain')
    entry.end(null)
  }
  archive.finalize()
  await written
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** Files that an engine image needs from its base, empty here. */
export const BASE_FILES = [
  ...['node', 'bash', 'curl', 'git', 'tini'].map((tool) => `usr/bin/${tool}`),
  'etc/ssl/certs/ca-certificates.crt',
  'home/node/',
]

/** {@link writeImageArchive} for an engine base with empty files. */
export async function writeHollowBase(path: string, files = BASE_FILES, env: string[] = []): Promise<void> {
  const layer = `${path}.layer`
  const archive = pack()
  const written = pipeline(Readable.from(archive as AsyncIterable<Buffer>), createWriteStream(layer))
  for (const name of files)
    archive.entry({ name: `./${name}`, type: name.endsWith('/') ? 'directory' : 'file' }, '')
  archive.finalize()
  await written
  const config = { Env: ['PATH=/usr/local/bin:/usr/bin:/bin', ...env], Cmd: ['node'] }
  await writeImageArchive(path, ['base:1'], [layer], config)
}
