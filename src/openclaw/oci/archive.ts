/** Image archives: OCI layouts that also contain the manifest of `docker save`, and older archives of `docker save`. */
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { readFile, rename, rm, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'
import { z } from 'zod'
import { SandboxError } from '../../errors.ts'
import { temporaryName } from '../../lib/files.ts'
import {
  type Architecture,
  choosePlatform,
  type Descriptor,
  MEDIA,
  type PackedImage,
  type RawImage,
  readConfig,
  readManifest,
} from './image.ts'
import { readTar } from './layer.ts'

const blobName = ({ digest }: Descriptor) => `blobs/${digest.replace(':', '/')}`

/** Writes an image as an archive that `docker load` and `ctr images import` accept. It appears whole or not at all. */
export async function writeArchive(path: string, image: PackedImage, name: string): Promise<void> {
  const { manifest, config, layers } = image
  const annotations = {
    'io.containerd.image.name': name,
    'org.opencontainers.image.ref.name': /:([^/:]+)$/.exec(name)?.[1] ?? 'latest',
  }
  const index = {
    schemaVersion: 2,
    mediaType: MEDIA.index,
    manifests: [{ ...manifest.descriptor, annotations }],
  }
  const docker = [
    {
      Config: blobName(config.descriptor),
      RepoTags: [name],
      Layers: layers.map(({ descriptor }) => blobName(descriptor)),
    },
  ]
  const small = {
    'oci-layout': { imageLayoutVersion: '1.0.0' },
    'index.json': index,
    'manifest.json': docker,
  }
  const draft = temporaryName(path)
  const archive = pack()
  const written = pipeline(Readable.from(archive as AsyncIterable<Buffer>), createWriteStream(draft))
  written.catch(() => {})
  try {
    for (const [file, content] of Object.entries(small))
      archive.entry({ name: file, mtime: new Date(0), mode: 0o644 }, JSON.stringify(content))
    for (const blob of new Map(
      [manifest, config, ...layers].map((one) => [one.descriptor.digest, one]),
    ).values()) {
      const header = { name: blobName(blob.descriptor), mtime: new Date(0), mode: 0o644 }
      const entry = archive.entry({ ...header, size: (await stat(blob.path)).size })
      for await (const chunk of createReadStream(blob.path))
        if (!entry.write(chunk)) await once(entry, 'drain')
      entry.end(null)
    }
    archive.finalize()
    await written
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

const savedManifest = z.array(z.object({ Config: z.string(), Layers: z.array(z.string()) })).length(1)

/** Reads an image from an archive into files of `dir`. @throws SandboxError */
export async function readArchive(path: string, architecture: Architecture, dir: string): Promise<RawImage> {
  const files = await unpack(path, dir)
  const find = (name: string): string => {
    const found = files.get(posix.normalize(name))
    if (!found) throw new SandboxError('no_image', `${path} is not an image archive: it has no ${name}`)
    return found
  }
  const blobOf = (descriptor: Descriptor) => find(blobName(descriptor))
  if (files.has('index.json')) {
    let chosen = choosePlatform(await readFile(find('index.json')), architecture)
    if (chosen.mediaType === MEDIA.index || chosen.mediaType === MEDIA.dockerIndex)
      chosen = choosePlatform(await readFile(blobOf(chosen)), architecture)
    const { config, layers } = readManifest(await readFile(blobOf(chosen)))
    const taken = layers.map((layer) => ({ path: blobOf(layer), digest: layer.digest }))
    return { config: readConfig(await readFile(blobOf(config))), layers: taken }
  }
  const saved = savedManifest.safeParse(JSON.parse(await readFile(find('manifest.json'), 'utf8')))
  const [one] = saved.data ?? []
  if (!one) throw new SandboxError('no_image', `${path} must have exactly one image`)
  const config = readConfig(await readFile(find(one.Config)))
  return { config, layers: one.Layers.map((name) => ({ path: find(name) })) }
}

/** The files of an archive by name, each in a file of `dir`; links share their target's file. */
async function unpack(path: string, dir: string): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  const links = new Map<string, string>()
  try {
    for await (const entry of readTar(createReadStream(path))) {
      const { type, linkname } = entry.header
      const name = posix.normalize(entry.header.name)
      if (type === 'symlink') links.set(name, posix.join(posix.dirname(name), linkname ?? ''))
      else if (type === 'link') links.set(name, posix.normalize(linkname ?? ''))
      else if (type === 'file') {
        const file = temporaryName(join(dir, 'entry'))
        await pipeline(Readable.from(entry as AsyncIterable<Buffer>), createWriteStream(file))
        files.set(name, file)
        continue
      }
      entry.resume()
    }
  } catch (error) {
    throw new SandboxError('no_image', `${path} cannot be read: ${(error as Error).message}`, {
      cause: error,
    })
  }
  for (const [name, target] of links) {
    const file = files.get(target)
    if (file) files.set(name, file)
  }
  return files
}
