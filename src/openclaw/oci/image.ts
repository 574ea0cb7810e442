/** An image in a folder while it is built: its configuration, and its layers as files (OCI image spec 1.1). */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { SandboxError } from '../../errors.ts'

export const MEDIA = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
  dockerIndex: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
} as const

const digest = z.string().regex(/^sha256:[\da-f]{64}$/)
const platform = z.object({ os: z.string(), architecture: z.string() })
const descriptor = z.object({ mediaType: z.string(), digest, size: z.number().int().nonnegative() })
export type Descriptor = z.infer<typeof descriptor>

const index = z.object({
  manifests: z.array(descriptor.extend({ platform: platform.optional() })),
})
const manifest = z.object({ config: descriptor, layers: z.array(descriptor) })
const config = z.looseObject({
  ...platform.shape,
  config: z.looseObject({ Env: z.array(z.string()).nullish() }).nullish(),
  rootfs: z.looseObject({ type: z.literal('layers'), diff_ids: z.array(digest) }),
  history: z.array(z.looseObject({})).nullish(),
})
export type ImageConfig = z.infer<typeof config>

/** The name of a processor in images: `amd64`, `arm64`. */
export type Architecture = string

/** A file with one part of an image. */
export interface Blob {
  descriptor: Descriptor
  path: string
}

/** A layer as received, compressed or not. */
export interface RawLayer {
  path: string
  /** The digest of the file, if known. */
  digest?: string
}

/** An image as received. */
export interface RawImage {
  config: ImageConfig
  layers: RawLayer[]
}

export interface Image {
  config: ImageConfig
  layers: Blob[]
}

/** A complete image, to be pushed or written into an archive. */
export interface PackedImage {
  /** The manifest, whose digest is the image's. */
  manifest: Blob
  config: Blob
  layers: Blob[]
}

/** Reads a manifest, an index or a configuration. @throws SandboxError if it is malformed. */
const readIndex = (bytes: Buffer) => read(index, bytes, 'an index')
export const readManifest = (bytes: Buffer) => read(manifest, bytes, 'a manifest')
export const readConfig = (bytes: Buffer): ImageConfig => read(config, bytes, 'a configuration')

function read<T>(schema: z.ZodType<T>, bytes: Buffer, what: string): T {
  try {
    return schema.parse(JSON.parse(bytes.toString('utf8')))
  } catch (error) {
    throw new SandboxError('internal', `the base image has ${what} that cannot be read`, { cause: error })
  }
}

/** The manifest for a platform in an index. @throws SandboxError if there is none. */
export function choosePlatform(bytes: Buffer, architecture: Architecture): Descriptor {
  const all = readIndex(bytes).manifests
  const fits = all.find(({ platform: of }) => of?.os === 'linux' && of.architecture === architecture)
  const chosen = fits ?? (all.length === 1 && !all[0]?.platform ? all[0] : undefined)
  if (!chosen) throw new SandboxError('no_image', `the base image is not for linux/${architecture}`)
  return chosen
}

export const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** Completes an image: writes its configuration and manifest into `dir`. The same image always gets the same digest. */
export async function packImage(dir: string, { config, layers }: Image): Promise<PackedImage> {
  const packedConfig = await writeBlob(dir, MEDIA.config, config)
  const body = {
    schemaVersion: 2,
    mediaType: MEDIA.manifest,
    config: packedConfig.descriptor,
    layers: layers.map(({ descriptor }) => descriptor),
  }
  return { manifest: await writeBlob(dir, MEDIA.manifest, body), config: packedConfig, layers }
}

async function writeBlob(dir: string, mediaType: string, content: unknown): Promise<Blob> {
  const bytes = Buffer.from(JSON.stringify(content))
  const descriptor = { mediaType, digest: sha256(bytes), size: bytes.length }
  const path = join(dir, descriptor.digest.slice('sha256:'.length))
  await writeFile(path, bytes)
  return { descriptor, path }
}
