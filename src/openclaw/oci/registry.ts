/** A registry client (OCI distribution spec 1.1), limited to what building an image needs. */
import { createWriteStream, openAsBlob } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandboxError } from '../../errors.ts'
import { temporaryName } from '../../lib/files.ts'
import { readWhole } from '../../lib/read.ts'
import { within } from '../../lib/signals.ts'
import { credentialsFor } from './credentials.ts'
import {
  type Architecture,
  type Blob,
  choosePlatform,
  type Descriptor,
  MEDIA,
  type PackedImage,
  type RawImage,
  type RawLayer,
  readConfig,
  readManifest,
  sha256,
} from './image.ts'
import type { ImageReference } from './reference.ts'

const ASK_MS = 30_000
/** A layer may have hundreds of megabytes. */
const BLOB_MS = 30 * 60_000
const MANIFEST_BYTES = 4 * 1024 * 1024
const TOKEN_BYTES = 256 * 1024

/** Plain HTTP is only for a registry on this machine. */
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/

interface Asked extends RequestInit {
  ms?: number
  /** Statuses that are not errors. */
  ok?: number[]
}

export class Registry {
  readonly #name: string
  readonly #repository: string
  readonly #base: URL
  readonly #signal: AbortSignal | undefined
  #authorization: string | undefined

  constructor({ registry, repository }: ImageReference, signal?: AbortSignal) {
    this.#name = registry
    this.#repository = repository
    const host = registry === 'docker.io' ? 'registry-1.docker.io' : registry
    this.#base = new URL(`${LOCAL.test(registry) ? 'http' : 'https'}://${host}/v2/${repository}/`)
    this.#signal = signal
  }

  /** Downloads an image into `dir`. @throws SandboxError */
  async pull(tag: string, architecture: Architecture, dir: string): Promise<RawImage> {
    let bytes = await this.#manifest(tag)
    if (isIndex(bytes)) bytes = await this.#manifest(choosePlatform(bytes, architecture).digest)
    const { config, layers } = readManifest(bytes)
    const blobs: RawLayer[] = []
    for (const layer of layers) blobs.push(await this.#download(layer, dir))
    return { config: readConfig(await this.#small(config)), layers: blobs }
  }

  /**
   * Pushes an image under a tag; the tag appears only once the image is complete. @returns the image's digest. @throws
   * SandboxError
   */
  async push(tag: string, { manifest, config, layers }: PackedImage): Promise<string> {
    for (const blob of [...layers, config]) await this.#upload(blob)
    const headers = { 'content-type': manifest.descriptor.mediaType }
    const body = await openAsBlob(manifest.path)
    await this.#ask(new URL(`manifests/${tag}`, this.#base), { method: 'PUT', headers, body })
    return manifest.descriptor.digest
  }

  async #manifest(reference: string): Promise<Buffer> {
    const accept = [MEDIA.index, MEDIA.manifest, MEDIA.dockerIndex, MEDIA.dockerManifest].join(', ')
    const answer = await this.#ask(new URL(`manifests/${reference}`, this.#base), { headers: { accept } })
    const bytes = await readBounded(answer, MANIFEST_BYTES)
    if (reference.includes(':') && sha256(bytes) !== reference) throw this.#wrong(reference)
    return bytes
  }

  async #small(descriptor: Descriptor): Promise<Buffer> {
    const bytes = await readBounded(await this.#ask(this.#blob(descriptor), {}), MANIFEST_BYTES)
    if (sha256(bytes) !== descriptor.digest) throw this.#wrong(descriptor.digest)
    return bytes
  }

  /** Bounds the bytes; `takeLayer` checks them. */
  async #download(descriptor: Descriptor, dir: string): Promise<RawLayer> {
    const answer = await this.#ask(this.#blob(descriptor), { ms: BLOB_MS })
    const path = temporaryName(join(dir, 'blob'))
    let left = descriptor.size
    await pipeline(
      Readable.from((answer.body ?? []) as AsyncIterable<Buffer>),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          left -= chunk.length
          if (left < 0) return
          yield chunk
        }
      },
      createWriteStream(path),
    ).catch((error) => {
      throw this.#broken(error)
    })
    return { path, digest: descriptor.digest }
  }

  /** Skips blobs that the registry already has. */
  async #upload({ descriptor, path }: Blob): Promise<void> {
    const found = await this.#ask(this.#blob(descriptor), { method: 'HEAD', ok: [404] })
    if (found.status !== 404) return
    const begun = await this.#ask(new URL('blobs/uploads/', this.#base), { method: 'POST' })
    const place = new URL(begun.headers.get('location') ?? '', begun.url)
    place.searchParams.set('digest', descriptor.digest)
    const headers = { 'content-type': 'application/octet-stream' }
    await this.#ask(place, { method: 'PUT', headers, body: await openAsBlob(path), ms: BLOB_MS })
  }

  readonly #blob = ({ digest }: Descriptor) => new URL(`blobs/${digest}`, this.#base)

  /**
   * Sends a request, and repeats it with a token if the registry asks for one. @throws SandboxError if the registry
   * refuses it.
   */
  async #ask(url: URL, { ms = ASK_MS, ok = [], ...init }: Asked): Promise<Response> {
    const send = async () => {
      const headers = new Headers(init.headers)
      // An upload URL may be on another host, with its authorization in the query.
      if (this.#authorization && url.origin === this.#base.origin)
        headers.set('authorization', this.#authorization)
      return fetch(url, { ...init, headers, signal: within(ms, this.#signal) }).catch((error) => {
        throw this.#broken(error)
      })
    }
    let answer = await send()
    if (answer.status === 401 && url.origin === this.#base.origin) {
      await answer.body?.cancel()
      this.#authorization = await this.#authorize(answer.headers.get('www-authenticate') ?? '', init.method)
      answer = await send()
    }
    if (answer.ok || ok.includes(answer.status)) return answer
    await answer.body?.cancel()
    throw this.#refusal(answer.status)
  }

  /**
   * The Authorization header that the registry asks for (RFC 9110, 11.6.1, and the token protocol of the distribution
   * registry).
   */
  async #authorize(challenge: string, method = 'GET'): Promise<string | undefined> {
    const known = await credentialsFor(this.#name)
    const basic = known && `Basic ${Buffer.from(known).toString('base64')}`
    if (!/^bearer /i.test(challenge)) return basic
    const said = Object.fromEntries(
      [...challenge.matchAll(/\b(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text]),
    )
    const realm = URL.canParse(said.realm) ? new URL(said.realm) : undefined
    // Otherwise the password would cross the network in the clear.
    if (!realm || (realm.protocol !== 'https:' && !LOCAL.test(realm.host)))
      throw new SandboxError('internal', `${this.#name} names no trustworthy token server`)
    if (said.service) realm.searchParams.set('service', said.service)
    const actions = method === 'GET' || method === 'HEAD' ? 'pull' : 'pull,push'
    realm.searchParams.set('scope', said.scope ?? `repository:${this.#repository}:${actions}`)
    const answer = await fetch(realm, {
      headers: basic ? { authorization: basic } : {},
      signal: within(ASK_MS, this.#signal),
    }).catch((error) => {
      throw this.#broken(error)
    })
    if (!answer.ok) throw this.#refusal(answer.status)
    const { token, access_token } = JSON.parse((await readBounded(answer, TOKEN_BYTES)).toString('utf8'))
    return `Bearer ${token ?? access_token}`
  }

  #refusal(status: number): SandboxError {
    const what = `${this.#name}/${this.#repository}`
    if (status === 401 || status === 403)
      return new SandboxError(
        'internal',
        `${what}: the registry does not accept the credentials of this machine (${status}): docker login`,
      )
    if (status === 404) return new SandboxError('internal', `${what} is not in the registry`)
    return new SandboxError('internal', `${what}: the registry answers ${status}`)
  }

  #broken(error: Error): unknown {
    if (this.#signal?.aborted) return this.#signal.reason
    const why = (error.cause as Error | undefined)?.message || error.message
    return new SandboxError('no_image', `the registry ${this.#name} does not answer: ${why}`, {
      cause: error,
    })
  }

  #wrong(digest: string): SandboxError {
    return new SandboxError('internal', `the registry ${this.#name} sent other content than ${digest}`)
  }
}

function isIndex(bytes: Buffer): boolean {
  try {
    return Array.isArray(JSON.parse(bytes.toString('utf8')).manifests)
  } catch {
    return false
  }
}

const readBounded = (answer: Response, most: number): Promise<Buffer> =>
  readWhole(answer.body ?? [], most, () => new SandboxError('internal', 'the registry sent too much'))
