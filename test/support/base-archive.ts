/** Base images of engine images in archives, as `docker save` writes them. */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'

/** Writes an archive of an image with one layer, which is a tar of a file system. */
export async function writeBaseArchive(path: string, layer: string, env: string[] = []): Promise<void> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(layer), hash)
  const config = {
    os: 'linux',
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    config: { Env: ['PATH=/usr/local/bin:/usr/bin:/bin', ...env], Cmd: ['node'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${hash.digest('hex')}`] },
  }
  const archive = pack()
  const written = pipeline(Readable.from(archive as AsyncIterable<Buffer>), createWriteStream(path))
  archive.entry({ name: 'base.json' }, JSON.stringify(config))
  const manifest = [{ Config: 'base.json', RepoTags: ['base:1'], Layers: ['base/layer.tar'] }]
  archive.entry({ name: 'manifest.json' }, JSON.stringify(manifest))
  const entry = archive.entry({ name: 'base/layer.tar', size: (await stat(layer)).size })
  for await (const chunk of createReadStream(layer)) if (!entry.write(chunk)) await once(entry, 'drain')
  entry.end(null)
  archive.finalize()
  await written
}

/** What an image of an engine needs of its base, as empty files. */
export const BASE_FILES = [
  ...['node', 'bash', 'curl', 'git', 'tini'].map((tool) => `usr/bin/${tool}`),
  'etc/ssl/certs/ca-certificates.crt',
  'home/node/',
]

/** {@link writeBaseArchive} with empty files. */
export async function writeHollowBase(path: string, files = BASE_FILES, env?: string[]): Promise<void> {
  const layer = `${path}.layer`
  const archive = pack()
  const written = pipeline(Readable.from(archive as AsyncIterable<Buffer>), createWriteStream(layer))
  for (const name of files)
    archive.entry({ name: `./${name}`, type: name.endsWith('/') ? 'directory' : 'file' }, '')
  archive.finalize()
  await written
  await writeBaseArchive(path, layer, env)
}
